"""Which UCI tables there are. Three collections, a folder each:

- `uci/NAME`, in `uci_regression/`: the sets of the Bayesian-network literature with the splits of
  Hernández-Lobato and Adams (2015). Arrays X, y, and test (splits, n_test): row numbers.
- `uci_more/NAME`, in `uci_regression_more/`: more regression sets. Arrays X, y, and fold (n,):
  split s tests on the rows with fold s.
- `uci_class/NAME`, in `uci_classification/`: the sets of Fernández-Delgado et al. (2014). Arrays X,
  y, cv_train and cv_test (4, ·). Parts for testing that some sets have beside these (X_test) are
  not read: at their origin they are on another scale than X.
"""

from dataclasses import dataclass
from typing import Literal

Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Collection:
    """Tables of one kind in one folder; `keys` are the arrays beside X and y."""

    prefix: str
    title: str
    folder: str
    task: Task
    keys: tuple[str, ...]
    listed: str  # names, with spaces between

    def names(self) -> list[str]:
        return [f"{self.prefix}/{name}" for name in self.listed.split()]

    def file(self, name: str) -> str:
        """The path of a set below a data folder."""
        return f"{self.folder}/{name.removeprefix(f'{self.prefix}/')}.npz"


COLLECTIONS = (
    Collection(
        "uci",
        "UCI regression, the splits of the Bayesian-network literature",
        "uci_regression",
        "regression",
        ("test",),
        "boston concrete energy kin8nm naval power protein wine_red yacht",
    ),
    Collection(
        "uci_class",
        "UCI classification, four splits each",
        "uci_classification",
        "classification",
        ("cv_train", "cv_test"),
        """
        abalone acute-inflammation acute-nephritis annealing arrhythmia audiology-std
        balance-scale balloons bank blood breast-cancer breast-cancer-wisc
        breast-cancer-wisc-diag breast-cancer-wisc-prog breast-tissue car
        cardiotocography-10clases cardiotocography-3clases chess-krvk chess-krvkp
        congressional-voting conn-bench-sonar-mines-rocks conn-bench-vowel-deterding contrac
        credit-approval cylinder-bands dermatology echocardiogram ecoli energy-y1 energy-y2
        fertility flags glass haberman-survival hayes-roth heart-cleveland heart-hungarian
        heart-switzerland heart-va hepatitis hill-valley horse-colic ilpd-indian-liver
        image-segmentation ionosphere iris led-display lenses letter libras low-res-spect
        lung-cancer lymphography magic mammographic molec-biol-promoter molec-biol-splice
        monks-1 monks-2 monks-3 mushroom musk-1 nursery oocytes_merluccius_nucleus_4d
        oocytes_merluccius_states_2f oocytes_trisopterus_nucleus_2f
        oocytes_trisopterus_states_5b optical ozone page-blocks parkinsons pendigits pima
        pittsburg-bridges-MATERIAL pittsburg-bridges-REL-L pittsburg-bridges-SPAN
        pittsburg-bridges-T-OR-D pittsburg-bridges-TYPE planning plant-margin plant-shape
        plant-texture post-operative primary-tumor ringnorm seeds semeion soybean spambase spect
        spectf statlog-australian-credit statlog-german-credit statlog-heart statlog-image
        statlog-landsat statlog-vehicle steel-plates synthetic-control teaching thyroid
        tic-tac-toe titanic trains twonorm vertebral-column-2clases vertebral-column-3clases
        wall-following waveform waveform-noise wine wine-quality-red wine-quality-white yeast
        zoo
        """,
    ),
    Collection(
        "uci_more",
        "more UCI regression, ten folds each",
        "uci_regression_more",
        "regression",
        ("fold",),
        """
        airfoil autompg autos bike breastcancer challenger concrete concreteslump elevators energy
        fertility forest gas housing keggdirected keggundirected kin40k machine parkinsons
        pendulum pol protein pumadyn32nm servo skillcraft sml solar stock tamielectric wine yacht
        """,
    ),
)


def collection_of(name: str) -> Collection | None:
    """The collection that has a set of this name."""
    return next((c for c in COLLECTIONS if name in c.names()), None)

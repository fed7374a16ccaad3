"""Kernels that execute the site's pages draw vectors, and keep no history."""

c = get_config()  # noqa: F821 (IPython defines it)
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {}
c.InlineBackend.print_figure_kwargs = {"bbox_inches": None}
c.HistoryManager.enabled = False
c.IPKernelApp.log_level = 40  # connections without encryption stay on this machine

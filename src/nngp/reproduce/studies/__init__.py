"""What is computed for the paper's figures and tables: each study names its runs and does one."""

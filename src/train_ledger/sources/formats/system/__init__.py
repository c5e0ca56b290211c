"""What do launchers, schedulers, kernels, NCCL and Python itself print?"""

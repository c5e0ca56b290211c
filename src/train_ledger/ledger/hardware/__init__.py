"""What is known of the GPUs and network ports under the run's ranks?

From readings and from kernel lines, each on the clock of its own host; whose card it is, and what the run's
clock says, is only asked when the state is shown, so that it does not matter in which order hosts are read.
"""

"""What stands in a profiler's trace?"""

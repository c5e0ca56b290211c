"""What stands in one line of a log: who wrote it, when, which numbers?"""

"""What was written to files that others append to, rotate, cut and make anew?"""

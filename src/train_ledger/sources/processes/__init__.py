"""Which processes of the job are there, and which are gone?"""

"""How do causes read to a person: on what evidence, why, and what to do?"""

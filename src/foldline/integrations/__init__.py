"""Adapters: foldline underneath the clients and agent frameworks that you already use.

`foldline.wrap` is for the clients of OpenAI, Anthropic and Google (wrapped_clients.py). Each framework has a module of
its own, such as langchain.py. They share followed_session.py, which keeps a session in step with a history that
somebody else owns.
"""

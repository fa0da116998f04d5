"""Adapters that connect foldline to the clients and agent frameworks that you already use.

`foldline.wrap` is for the clients of OpenAI, Anthropic and Google (wrapped_clients.py). Each framework has a module of
its own, such as langchain.py. All adapters use followed_session.py, which updates a session from a history that the
client or framework keeps.
"""

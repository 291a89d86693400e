"""Receives webhooks, verifies them with Stripe's library, whose scheme the signature has, and appends the id of each
event to a file.

Usage: receiver.py PORT SECRET FILE. Prints a line when it listens, and ends with stdin, so that it never outlives the
tests.
"""

import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import stripe

port, secret, path = sys.argv[1:]


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            stripe.Webhook.construct_event(body, self.headers["x-fanfare-signature"], secret)
            line, status = self.headers["x-fanfare-event-id"], 200
        except Exception as error:
            line, status = f"refused: {error}", 400
        # Kept before it is acknowledged.
        with open(path, "a") as file:
            file.write(f"{line}\n")
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_stdin, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver)
print("ready", flush=True)
server.serve_forever()

"""Publishes to the sandbox through the platforms' official or best-known Python clients.

Usage: official.py SANDBOX_URL. FANFARE_SPECS may name a directory with the discovery document of Google's
My Business API, which Google's client does not include.

A client with a setting for the platform's address is given the sandbox's. A client without one sends through
an adapter of `requests`, at a session that is part of its interface; none is patched.
"""

import base64
import io
import json
import os
import sys
import threading
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlsplit

sandbox = sys.argv[1].rstrip("/")
CALLBACK = "https://app.example/callback"
# Both are read when the clients are imported.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
os.environ["PINTEREST_API_URI"] = f"{sandbox}/api-sandbox.pinterest.com/v5"

import atproto
import atproto.exceptions
import praw
import praw.exceptions
import requests
import tweepy
import xdk
from facebook_business.adobjects.advideo import AdVideo
from facebook_business.adobjects.igmediaforigonlyapi import IGMediaForIGOnlyAPI
from facebook_business.adobjects.iguserforigonlyapi import IGUserForIGOnlyAPI
from facebook_business.adobjects.page import Page
from facebook_business.adobjects.pagepost import PagePost
from facebook_business.api import FacebookAdsApi
from facebook_business.exceptions import FacebookRequestError
from facebook_business.session import FacebookSession
from google.oauth2.credentials import Credentials
from googleapiclient import discovery_cache
from googleapiclient.discovery import build_from_document
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaInMemoryUpload, MediaIoBaseUpload
from linkedin_api.clients.auth.client import AuthClient
from linkedin_api.clients.restli.client import RestliClient
from openapi_generated.pinterest_client.exceptions import NotFoundException
from pinterest.client import PinterestSDKClient
from pinterest.organic.boards import Board
from pinterest.organic.pins import Pin
from praw.models.media import PostMedia
from xdk.media.models import AppendUploadRequest, InitializeUploadRequest, UploadRequest
from xdk.posts.models import CreateRequest


def address(url):
    """Returns a platform's URL as the sandbox serves it."""
    return f"{sandbox}/{url.removeprefix('https://')}"


class Redirect(requests.adapters.HTTPAdapter):
    """Sends requests for the platforms to the sandbox."""

    def send(self, request, **options):
        request.url = address(request.url)
        return super().send(request, **options)


def redirected(session):
    session.mount("https://", Redirect())
    return session


def call(path, body):
    response = requests.post(sandbox + path, json=body, timeout=30)
    response.raise_for_status()
    return response.json()


def connect(platform, username):
    return call("/_accounts", {"platform": platform, "username": username})


def consent(url, username):
    """Allows access on the consent page, and returns the address that it redirects to."""
    page, query = url.split("?", 1)
    decision = {**dict(parse_qsl(query)), "decision": "allow", "username": username}
    page = page if page.startswith(sandbox) else address(page)
    response = requests.post(page, data=decision, allow_redirects=False, timeout=30)
    assert response.is_redirect, response.text
    return response.headers["location"]


def code_of(url):
    return parse_qs(urlsplit(url).query)["code"][0]


@contextmanager
def refusal(kind, matches=lambda error: True):
    """Expects that the client raises this error."""
    try:
        yield
    except kind as error:
        assert matches(error), error
    else:
        raise AssertionError(f"expected {kind.__name__}")


def jpeg(side=640):
    """Returns a gray picture, with a comment because Google Business takes none below 10 KB."""

    def segment(mark, data):
        return bytes([0xFF, mark]) + (len(data) + 2).to_bytes(2, "big") + data

    size, codes = side.to_bytes(2, "big"), bytes([1] + [0] * 16)
    head = [
        segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"),
        segment(0xFE, bytes(12_000)),
        segment(0xDB, b"\0" + b"\1" * 64),
        segment(0xC0, b"\x08" + size + size + b"\1\1\x11\0"),
        segment(0xC4, b"\x00" + codes),
        segment(0xC4, b"\x10" + codes),
        segment(0xDA, bytes([1, 1, 0, 0, 63, 0])),
    ]
    # Two bits for each block of 8 by 8 pixels: no change, end of block.
    return b"\xff\xd8" + b"".join(head) + bytes((side // 8) ** 2 // 4) + b"\xff\xd9"


def mp4():
    """Returns the boxes of a video of 5 seconds."""

    def box(kind, data):
        return (len(data) + 8).to_bytes(4, "big") + kind + data

    movie = bytes(12) + b"".join(number.to_bytes(4, "big") for number in (1000, 5000, 0x10000)) + bytes(76)
    return (
        box(b"ftyp", b"isom\0\0\2\0isomiso2mp41") + box(b"moov", box(b"mvhd", movie)) + box(b"mdat", bytes(1 << 20))
    )


JPEG, MP4 = jpeg(), mp4()


class Files(BaseHTTPRequestHandler):
    """Serves the media that platforms fetch."""

    def do_GET(self):
        mime, body = ("video/mp4", MP4) if self.path.endswith(".mp4") else ("image/jpeg", JPEG)
        self.send_response(200)
        self.send_header("Content-Type", mime)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


files = ThreadingHTTPServer(("127.0.0.1", 0), Files)
threading.Thread(target=files.serve_forever, daemon=True).start()
PICTURE, VIDEO = (f"http://127.0.0.1:{files.server_port}/{name}" for name in ("dawn.jpg", "dawn.mp4"))


def with_tweepy(username):
    app = connect("x", username)["app"]
    login = redirected(
        tweepy.OAuth2UserHandler(
            client_id=app["client_id"],
            client_secret=app["client_secret"],
            redirect_uri=CALLBACK,
            scope=["tweet.read", "tweet.write", "users.read", "offline.access"],
        )
    )
    token = login.fetch_token(consent(login.get_authorization_url(), username))
    token = login.refresh_token(
        "https://api.twitter.com/2/oauth2/token", refresh_token=token["refresh_token"], auth=login.auth
    )
    client = tweepy.Client(token["access_token"])
    redirected(client.session)
    me = client.get_me(user_auth=False).data
    assert me.username == username, me
    post = client.create_tweet(text="From tweepy", user_auth=False).data
    reply = client.create_tweet(text="More", in_reply_to_tweet_id=post["id"], user_auth=False).data
    shown = client.get_tweet(post["id"], tweet_fields=["author_id", "created_at", "public_metrics"]).data
    assert shown.text == "From tweepy" and shown.author_id == me.id, shown.data
    assert shown.created_at and shown.public_metrics["reply_count"] == 1, shown.data
    listed = [str(one.id) for one in client.get_users_tweets(me.id).data]
    assert listed == [reply["id"], post["id"]], listed
    with refusal(tweepy.Forbidden):
        client.create_tweet(text="From tweepy", user_auth=False)
    assert client.delete_tweet(post["id"], user_auth=False).data == {"deleted": True}
    gone = client.get_tweet(post["id"])
    assert gone.data is None and gone.errors, gone


def with_xdk(username):
    app = connect("x", username)["app"]
    client = xdk.Client(
        base_url=f"{sandbox}/api.x.com",
        authorization_base_url=f"{sandbox}/x.com/i",
        client_id=app["client_id"],
        client_secret=app["client_secret"],
        redirect_uri=CALLBACK,
        scope=["tweet.read", "tweet.write", "users.read", "media.write", "offline.access"],
    )
    client.fetch_token(consent(client.get_authorization_url(), username))
    client.refresh_token()
    assert client.users.get_me().data.username == username
    upload = UploadRequest(media=text_of(JPEG), media_category="tweet_image", media_type="image/jpeg")
    picture = client.media.upload(upload).data.id
    post = client.posts.create(CreateRequest(text="From xdk", media={"media_ids": [picture]})).data
    shown = client.posts.get_by_id(post.id, post_fields=["attachments"]).data
    assert shown.text == post.text and shown.text.startswith("From xdk"), shown
    assert shown.attachments.media_keys == [f"3_{picture}"], shown
    begin = InitializeUploadRequest(media_category="tweet_video", media_type="video/mp4", total_bytes=len(MP4))
    film = client.media.initialize_upload(begin).data.id
    for index, start in enumerate(range(0, len(MP4), 1 << 19)):
        part = AppendUploadRequest(media=text_of(MP4[start : start + (1 << 19)]), segment_index=index)
        client.media.append_upload(film, part)
    client.media.finalize_upload(film)
    assert client.media.get_upload_status(film).data.processing_info.state == "succeeded"
    client.posts.create(CreateRequest(text="A film from xdk", media={"media_ids": [film]}))
    assert client.posts.delete(post.id).data.deleted


def text_of(data):
    return base64.b64encode(data).decode()


def with_praw(username):
    app = connect("reddit", username)["app"]
    reddit = praw.Reddit(
        client_id=app["client_id"],
        client_secret=app["client_secret"],
        redirect_uri=CALLBACK,
        user_agent=f"python:fanfare-contract:v1 (by /u/{username})",
        # Also for the storage of media, which has no setting.
        requestor_kwargs={"session": redirected(requests.Session())},
        check_for_updates=False,
    )
    scopes = ["identity", "submit", "read", "edit", "history"]
    assert reddit.auth.authorize(code_of(consent(reddit.auth.url(scopes=scopes, state="s"), username)))
    assert reddit.user.me().name == username
    post = reddit.subreddit("test").submit("From PRAW", selftext="A text & more")
    shown = reddit.submission(post.id)
    assert (shown.title, shown.selftext, shown.author.name) == ("From PRAW", "A text & more", username)
    comment = post.reply("A comment")
    comment.edit("An edited comment")
    assert [one.body for one in reddit.submission(post.id).comments] == ["An edited comment"]
    # The client reads the post's id from a websocket.
    picture = reddit.subreddit("test").submit("A picture", image=PostMedia(JPEG, name="dawn.jpg"))
    assert [one.id for one in reddit.user.me().submissions.new()] == [picture.id, post.id]
    with refusal(praw.exceptions.RedditAPIException, lambda error: error.items[0].error_type == "SUBREDDIT_NOEXIST"):
        reddit.subreddit("missing_one").submit("From PRAW", selftext="")
    comment.delete()
    post.delete()
    assert reddit.submission(post.id).author is None


def with_atproto(username):
    password = connect("bluesky", username)["grant"]["extra"]["app_password"]
    client = atproto.Client(base_url=sandbox)
    me = client.login(username, password)
    assert me.handle == username, me
    post = client.send_post(atproto.client_utils.TextBuilder().text("From ").link("atproto", "https://example.com"))
    strong = {"uri": post.uri, "cid": post.cid}
    reply = client.send_post("A reply", reply_to={"root": strong, "parent": strong})
    picture = client.send_image("A picture", JPEG, "Nothing but gray")
    shown = client.get_posts([post.uri, picture.uri]).posts
    assert shown[0].record.text == "From atproto" and shown[0].reply_count == 1, shown[0]
    assert shown[0].record.facets[0].features[0].uri == "https://example.com", shown[0]
    assert shown[1].embed.images[0].alt == "Nothing but gray", shown[1]
    listed = [item.post.uri for item in client.get_author_feed(me.did).feed]
    assert listed == [picture.uri, reply.uri, post.uri], listed
    assert client.delete_post(post.uri)
    with refusal(atproto.exceptions.BadRequestError, lambda error: error.response.content.error == "RecordNotFound"):
        client.get_post(post.uri.rsplit("/", 1)[1])


def is_named(shown, username):
    """Returns whether a display name is that of an account: the words of its username, and a family name."""
    words = [name.replace(".", " ").replace("_", " ").replace("-", " ") for name in (shown, username)]
    return words[0].startswith(words[1])


def meta(platform, username):
    """Returns the account's id and the client of Meta's API with its token."""
    account = connect(platform, username)
    app = account["app"]
    session = FacebookSession(app["client_id"], app["client_secret"], account["grant"]["access_token"])
    session.GRAPH = f"{sandbox}/graph.{platform}.com"
    return account["identity"]["network_unique_id"], FacebookAdsApi(session)


def with_facebook_business(username):
    number, api = meta("facebook", username)
    page = Page(number, api=api)
    assert is_named(page.api_get(fields=["name"])["name"], username)
    post = page.create_feed(params={"message": "From facebook-business"})
    shown = PagePost(post["id"], api=api)
    assert shown.api_get(fields=["message", "permalink_url"])["message"] == "From facebook-business", shown
    shown.api_update(params={"message": "Edited"})
    assert shown.create_comment(params={"message": "A comment"})["id"]
    photo = page.create_photo(params={"url": PICTURE, "published": False})
    picture = page.create_feed(params={"message": "A picture", "attached_media": [{"media_fbid": photo["id"]}]})
    film = page.create_video(params={"file_url": VIDEO, "description": "A film"})
    status = AdVideo(film["id"], api=api).api_get(fields=["status"])["status"]
    assert status["video_status"] == "ready", status
    listed = page.get_published_posts(fields=["message"])
    assert [one["message"] for one in listed] == ["A film", "A picture", "Edited"], listed
    PagePost(picture["id"], api=api).api_delete()
    with refusal(FacebookRequestError, lambda error: (error.api_error_code(), error.api_error_subcode()) == (100, 33)):
        PagePost(picture["id"], api=api).api_get()


def with_facebook_business_on_instagram(username):
    number, api = meta("instagram", username)
    me = IGUserForIGOnlyAPI("me", api=api).api_get(fields=["user_id", "username"])
    assert me["user_id"] == number and me["username"] == username, me
    account = IGUserForIGOnlyAPI(number, api=api)
    container = account.create_media(params={"image_url": PICTURE, "caption": "From facebook-business", "alt_text": "Gray"})
    published = account.create_media_publish(params={"creation_id": container["id"]})
    post = IGMediaForIGOnlyAPI(published["id"], api=api)
    post.api_get(fields=["alt_text", "caption", "media_type", "permalink"])
    assert (post["caption"], post["alt_text"], post["media_type"]) == ("From facebook-business", "Gray", "IMAGE"), post
    assert post.create_comment(params={"message": "A comment"})["id"]
    assert [one["id"] for one in account.get_media()] == [post["id"]]
    assert account.get_content_publishing_limit(fields=["quota_usage"])[0]["quota_usage"] == 1


def with_pinterest_api_sdk(username):
    account = connect("pinterest", username)
    app = account["app"]
    client = PinterestSDKClient.create_client_with_refresh_token(
        account["grant"]["refresh_token"], app["client_id"], app["client_secret"]
    )
    board = Board.create("Bridges", client=client)
    media = {"source_type": "image_url", "url": PICTURE}
    pin = Pin.create(board.id, media, title="From pinterest-api-sdk", alt_text="Gray", client=client)
    shown = Pin(pin.id, client=client)
    assert (shown.title, shown.alt_text, shown.board_id) == ("From pinterest-api-sdk", "Gray", board.id), shown
    pins, _ = board.list_pins()
    assert [one.id for one in pins] == [pin.id], pins
    assert Pin.delete(pin.id, client=client)
    with refusal(NotFoundException):
        Pin(pin.id, client=client)


def google(account):
    """Returns credentials that the client refreshes before its first request."""
    app = account["app"]
    return Credentials(
        None,
        refresh_token=account["grant"]["refresh_token"],
        client_id=app["client_id"],
        client_secret=app["client_secret"],
        token_uri=f"{sandbox}/oauth2.googleapis.com/token",
    )


def service(document, credentials):
    document["rootUrl"] = address(document["rootUrl"])
    return build_from_document(document, credentials=credentials)


def bundled(name, version):
    """Returns a discovery document of the client."""
    return json.loads(discovery_cache.get_static_doc(name, version))


def with_google_api_python_client(username):
    youtube = service(bundled("youtube", "v3"), google(connect("youtube", username)))
    channel = youtube.channels().list(part="snippet,contentDetails", mine=True).execute()["items"][0]
    assert is_named(channel["snippet"]["title"], username), channel
    resource = {
        "snippet": {"title": "From google-api-python-client"},
        "status": {"privacyStatus": "private", "selfDeclaredMadeForKids": False},
    }
    film = MediaIoBaseUpload(io.BytesIO(MP4), "video/mp4", chunksize=1 << 18, resumable=True)
    upload = youtube.videos().insert(part="snippet,status", body=resource, media_body=film)
    video, pieces = None, 0
    while video is None:
        _, video = upload.next_chunk()
        pieces += 1
    assert pieces == 5, pieces
    number = video["id"]
    thumbnail = MediaInMemoryUpload(JPEG, "image/jpeg")
    assert youtube.thumbnails().set(videoId=number, media_body=thumbnail).execute()["items"]
    caption = MediaInMemoryUpload(b"1\n00:00:00,000 --> 00:00:01,000\nHello\n", "application/octet-stream")
    track = {"snippet": {"videoId": number, "language": "en", "name": ""}}
    assert youtube.captions().insert(part="snippet", body=track, media_body=caption).execute()["id"]
    shown = youtube.videos().list(part="snippet,status", id=number).execute()["items"][0]
    assert shown["snippet"]["title"] == "From google-api-python-client", shown
    assert shown["status"]["uploadStatus"] == "processed", shown
    uploads = channel["contentDetails"]["relatedPlaylists"]["uploads"]
    listed = youtube.playlistItems().list(part="contentDetails", playlistId=uploads).execute()["items"]
    assert [item["contentDetails"]["videoId"] for item in listed] == [number], listed
    youtube.videos().delete(id=number).execute()
    with refusal(HttpError, lambda error: error.status_code == 404):
        youtube.videos().delete(id=number).execute()


def with_google_api_python_client_on_business(username):
    credentials = google(connect("google_business", username))
    management = service(bundled("mybusinessaccountmanagement", "v1"), credentials)
    information = service(bundled("mybusinessbusinessinformation", "v1"), credentials)
    account = management.accounts().list().execute()["accounts"][0]["name"]
    found = information.accounts().locations().list(parent=account, readMask="name,title").execute()["locations"]
    assert is_named(found[0]["title"], username), found
    path = Path(os.environ.get("FANFARE_SPECS", ""), "google-mybusiness.v4p4.discovery.json")
    if not path.is_file():
        return "read only: there is no discovery document for posts"
    posts = service(json.loads(path.read_text()), credentials).accounts().locations().localPosts()
    parent = f"{account}/{found[0]['name']}"
    picture = {"mediaFormat": "PHOTO", "sourceUrl": PICTURE}
    body = {"languageCode": "en", "topicType": "STANDARD", "summary": "From google-api-python-client", "media": [picture]}
    post = posts.create(parent=parent, body=body).execute()
    assert post["state"] == "LIVE", post
    assert posts.get(name=post["name"]).execute()["summary"] == "From google-api-python-client"
    listed = posts.list(parent=parent).execute()["localPosts"]
    assert [one["name"] for one in listed] == [post["name"]], listed
    posts.delete(name=post["name"]).execute()
    with refusal(HttpError, lambda error: error.status_code == 404):
        posts.get(name=post["name"]).execute()


def with_linkedin_api_client(username):
    app = connect("linkedin", username)["app"]
    login = AuthClient(app["client_id"], app["client_secret"], CALLBACK)
    redirected(login.session)
    url = login.generate_member_auth_url(["openid", "profile", "w_member_social", "r_member_social"], "s")
    tokens = login.exchange_auth_code_for_access_token(code_of(consent(url, username)))
    tokens = login.exchange_refresh_token_for_access_token(tokens.refresh_token)
    assert login.introspect_access_token(tokens.access_token).active
    client = RestliClient()
    session = redirected(client.session)
    plain = {"access_token": tokens.access_token}
    # Each version is active for a year.
    versioned = {**plain, "version_string": datetime.now(timezone.utc).strftime("%Y%m")}
    author = f"urn:li:person:{client.get(resource_path='/userinfo', **plain).entity['sub']}"
    upload = client.action(
        resource_path="/images",
        action_name="initializeUpload",
        action_params={"initializeUploadRequest": {"owner": author}},
        **versioned,
    ).value
    session.put(upload["uploadUrl"], data=JPEG).raise_for_status()
    entity = {
        "author": author,
        "commentary": "From linkedin-api-client",
        "visibility": "PUBLIC",
        "distribution": {"feedDistribution": "MAIN_FEED", "targetEntities": [], "thirdPartyDistributionChannels": []},
        "content": {"media": {"id": upload["image"], "altText": "Gray"}},
        "lifecycleState": "PUBLISHED",
        "isReshareDisabledByAuthor": False,
    }
    created = client.create(resource_path="/posts", entity=entity, **versioned)
    assert created.status_code == 201, created.response.text
    post = {"resource_path": "/posts/{id}", "path_keys": {"id": created.decoded_entity_id}, **versioned}
    shown = client.get(**post).entity
    assert shown["commentary"] == "From linkedin-api-client", shown
    assert shown["content"]["media"]["id"] == upload["image"], shown
    assert client.partial_update(patch_set_object={"commentary": "Edited"}, **post).status_code == 204
    listed = client.finder(resource_path="/posts", finder_name="author", query_params={"author": author}, **versioned)
    assert [one["commentary"] for one in listed.elements] == ["Edited"], listed.response.text
    assert client.delete(**post).status_code == 204
    assert client.get(**post).status_code == 404


# By the standing of the app: a new one may not read its posts on LinkedIn, and may do nothing on Google Business.
WALKS = {
    "new": [
        (with_tweepy, "x", "tweepy"),
        (with_xdk, "x", "xdk"),
        (with_praw, "reddit", "praw"),
        (with_atproto, "bluesky", "atproto.bsky.social"),
        (with_facebook_business, "facebook", "business"),
        (with_facebook_business_on_instagram, "instagram", "business"),
        (with_pinterest_api_sdk, "pinterest", "pinner"),
        (with_google_api_python_client, "youtube", "google"),
    ],
    "approved": [
        (with_google_api_python_client_on_business, "google_business", "google"),
        (with_linkedin_api_client, "linkedin", "restli"),
    ],
}

for standing, walks in WALKS.items():
    call("/_settings", {"app": standing, "lag_ms": 0, "processing_ms": 0})
    for walk, platform, username in walks:
        outcome = walk(username)
        query = {"platform": platform, "account": username, "accepted": "true"}
        entries = requests.get(f"{sandbox}/_journal", params=query, timeout=30).json()["entries"]
        assert entries or outcome, f"{walk.__name__} published nothing"
        print(f"{walk.__name__} walked {platform}: {outcome or f'{len(entries)} publishing requests'}")

// Publishes to the sandbox through the platforms' official or best-known Node clients.
// Usage: official SANDBOX_URL
//
// A client with a setting for the platform's address is given the sandbox's. The others offer a hook for requests,
// which leads them there; none is patched.

import http from "node:http";
import { Readable } from "node:stream";
import { AtpAgent, RichText } from "@atproto/api";
import { auth, youtube } from "@googleapis/youtube";
import { Client } from "@xdevplatform/xdk";
import linkedin from "linkedin-api-client";
import { TwitterApi } from "twitter-api-v2";

const sandbox = process.argv[2].replace(/\/$/, "");
const callback = "https://app.example/callback";
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
// The first box of a video, and a box of data that is larger than one part of an upload.
const mp4 = Buffer.concat([
  Buffer.from("\0\0\0\x18ftypisom\0\0\x02\0isommp42\0\x60\0\x08mdat", "latin1"),
  Buffer.alloc(0x60_0000),
]);

function check(holds, what) {
  if (!holds) throw new Error(JSON.stringify(what));
}

// Expects that a request is refused, and returns the error.
function refused(request) {
  return request.then(
    (answer) => check(false, answer),
    (error) => error,
  );
}

// Returns a platform's URL as the sandbox serves it.
function address(url) {
  return String(url).replace(/^https:\/\//, `${sandbox}/`);
}

async function call(path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(sandbox + path, { method: "POST", headers, body: JSON.stringify(body) });
  check(answer.ok, await answer.clone().text());
  return answer.json();
}

function connect(platform, username) {
  return call("/_accounts", { platform, username });
}

// Allows access on the consent page, and returns the code that it redirects with.
async function consent(url, username) {
  const page = new URL(address(url));
  const body = new URLSearchParams(page.search);
  body.append("decision", "allow");
  body.append("username", username);
  const answer = await fetch(page.origin + page.pathname, { method: "POST", body, redirect: "manual" });
  check(answer.headers.get("location"), await answer.text());
  return new URL(answer.headers.get("location")).searchParams.get("code");
}

async function withAtproto(username) {
  const { grant } = await connect("bluesky", username);
  const agent = new AtpAgent({ service: sandbox });
  await agent.login({ identifier: username, password: grant.extra.app_password });
  await agent.sessionManager.refreshSession();
  const text = new RichText({ text: `From @${username} https://example.com #atproto` });
  await text.detectFacets(agent);
  check(text.facets.length === 3, text.facets);
  const post = await agent.post({ text: text.text, facets: text.facets });
  const { blob } = (await agent.uploadBlob(png, { encoding: "image/png" })).data;
  const images = [{ image: blob, alt: "One pixel" }];
  const picture = await agent.post({ text: "A picture", embed: { $type: "app.bsky.embed.images", images } });
  const key = { repo: agent.assertDid, rkey: post.uri.split("/").pop() };
  check((await agent.getPost(key)).value.text === text.text, post);
  const { feed } = (await agent.getAuthorFeed({ actor: agent.assertDid })).data;
  check(feed.map((item) => item.post.uri).join() === [picture.uri, post.uri].join(), feed);
  check(feed[0].post.embed.images[0].alt === "One pixel", feed[0]);
  await agent.deletePost(post.uri);
  const error = await refused(agent.getPost(key));
  check(error.status === 400 && error.error === "RecordNotFound", error);
}

async function withTwitterApi(username) {
  const { app } = await connect("x", username);
  const plugin = {
    onBeforeRequest({ computedParams }) {
      computedParams.url = new URL(address(computedParams.url));
    },
  };
  // The client sends through the `https` module, which speaks the agent's protocol.
  const settings = { plugins: [plugin], httpAgent: new http.Agent() };
  const login = new TwitterApi({ clientId: app.client_id, clientSecret: app.client_secret }, settings);
  const scope = ["tweet.read", "tweet.write", "users.read", "media.write", "offline.access"];
  const link = login.generateOAuth2AuthLink(callback, { scope });
  const code = await consent(link.url, username);
  const first = await login.loginWithOAuth2({ code, codeVerifier: link.codeVerifier, redirectUri: callback });
  const { client, refreshToken } = await login.refreshOAuth2Token(first.refreshToken);
  const me = (await client.v2.me()).data;
  check(me.username === username, me);
  const picture = await client.v2.uploadMedia(png, { media_type: "image/png" });
  const film = await client.v2.uploadMedia(mp4, { media_type: "video/mp4" });
  const post = (await client.v2.tweet("From twitter-api-v2", { media: { media_ids: [picture] } })).data;
  const options = { "tweet.fields": ["created_at"], expansions: ["attachments.media_keys"] };
  const shown = await client.v2.singleTweet(post.id, options);
  check(shown.data.text === post.text && shown.data.created_at, shown);
  check(shown.includes.media[0].media_key === `3_${picture}`, shown);
  const thread = await client.v2.tweetThread(["One", { text: "Two", media: { media_ids: [film] } }]);
  const timeline = await client.v2.userTimeline(me.id);
  const ids = [thread[1], thread[0]].map((answer) => answer.data.id);
  check(timeline.tweets.map((one) => one.id).join() === [...ids, post.id].join(), timeline.tweets);
  check(timeline.rateLimit.remaining > 0, timeline.rateLimit);
  check((await client.v2.deleteTweet(post.id)).data.deleted, post);
  check((await client.v2.singleTweet(post.id)).errors.length === 1, post);
  const error = await refused(client.v2.tweet("x".repeat(281)));
  check(error.code >= 400 && error.code < 500, error);
  check((await login.revokeOAuth2Token(refreshToken, "refresh_token")).revoked, refreshToken);
  check((await refused(login.refreshOAuth2Token(refreshToken))).code === 400, "the token was not revoked");
}

async function withXdk(username) {
  const { grant } = await connect("x", username);
  // Its login has no setting for the address, so it is given a token.
  const client = new Client({ baseUrl: `${sandbox}/api.x.com`, accessToken: grant.access_token });
  check((await client.users.getMe()).data.username === username, "another user");
  const upload = { media: png.toString("base64"), mediaCategory: "tweet_image", mediaType: "image/png" };
  const picture = (await client.media.upload(upload)).data;
  const post = (await client.posts.create({ text: "From xdk", media: { mediaIds: [picture.id] } })).data;
  const shown = (await client.posts.getById(post.id, { postFields: ["attachments"] })).data;
  check(shown.text === post.text && shown.attachments.mediaKeys[0] === picture.mediaKey, shown);
  check((await client.posts.delete(post.id)).data.deleted, post);
}

async function withGoogleapis(username) {
  const { app } = await connect("youtube", username);
  const fetchImplementation = (url, options) => fetch(address(url), options);
  const login = new auth.OAuth2({
    clientId: app.client_id,
    clientSecret: app.client_secret,
    redirectUri: callback,
    transporterOptions: { fetchImplementation },
  });
  const scope = "https://www.googleapis.com/auth/youtube.force-ssl";
  const url = login.generateAuthUrl({ access_type: "offline", prompt: "consent", scope });
  const { tokens } = await login.getToken(await consent(url, username));
  login.setCredentials({ refresh_token: tokens.refresh_token });
  // Its `rootUrl` can't have a path.
  const service = youtube({ version: "v3", auth: login, fetchImplementation });
  const channel = (await service.channels.list({ part: ["snippet"], mine: true })).data.items[0];
  check(channel.snippet.title.replace(/[._-]/g, " ").startsWith(username.replace(/[._-]/g, " ")), channel);
  const video = await service.videos.insert({
    part: ["snippet", "status"],
    requestBody: { snippet: { title: "From googleapis" }, status: { privacyStatus: "private" } },
    media: { mimeType: "video/mp4", body: Readable.from([mp4]) },
  });
  const key = { id: [video.data.id], part: ["snippet", "status"] };
  const shown = (await service.videos.list(key)).data.items[0];
  check(shown.snippet.title === "From googleapis" && shown.status.uploadStatus === "processed", shown);
  await service.videos.delete({ id: video.data.id });
  check((await service.videos.list(key)).data.items.length === 0, video.data);
  check((await refused(service.videos.delete({ id: video.data.id }))).status === 404, "deleted twice");
  await login.revokeToken(tokens.refresh_token);
}

async function withLinkedin(username) {
  const { grant } = await connect("linkedin", username);
  const client = new linkedin.RestliClient();
  // Documented for interceptors. The login's requests have no such hook; the Python client walks it.
  client.axiosInstance.interceptors.request.use((request) => ({ ...request, url: address(request.url) }));
  const plain = { accessToken: grant.access_token };
  const versionString = new Date().toISOString().slice(0, 7).replace("-", "");
  const posts = { ...plain, resourcePath: "/posts", versionString };
  const author = `urn:li:person:${(await client.get({ ...plain, resourcePath: "/userinfo" })).data.sub}`;
  const entity = {
    author,
    commentary: "From linkedin-api-client",
    visibility: "PUBLIC",
    distribution: { feedDistribution: "MAIN_FEED", targetEntities: [], thirdPartyDistributionChannels: [] },
    lifecycleState: "PUBLISHED",
    isReshareDisabledByAuthor: false,
  };
  const { createdEntityId } = await client.create({ ...posts, entity });
  const post = { ...posts, resourcePath: "/posts/{id}", pathKeys: { id: createdEntityId } };
  check((await client.get(post)).data.commentary === "From linkedin-api-client", createdEntityId);
  await client.partialUpdate({ ...post, patchSetObject: { commentary: "Edited" } });
  const { elements } = (await client.finder({ ...posts, finderName: "author", queryParams: { author } })).data;
  check(elements.map((one) => one.commentary).join() === "Edited", elements);
  check((await client.delete(post)).status === 204, createdEntityId);
  check((await refused(client.get(post))).response.status === 404, createdEntityId);
}

// By the standing of the app: a new one may not read its posts on LinkedIn.
const walks = {
  new: [
    [withAtproto, "bluesky", "atproto-api.bsky.social"],
    [withTwitterApi, "x", "twitter_api_v2"],
    [withXdk, "x", "xdk_node"],
    [withGoogleapis, "youtube", "googleapis"],
  ],
  approved: [[withLinkedin, "linkedin", "restli-node"]],
};
for (const [app, ones] of Object.entries(walks)) {
  await call("/_settings", { app, lag_ms: 0, processing_ms: 0 });
  for (const [walk, platform, account] of ones) {
    await walk(account).catch((error) => {
      // Without the request, which some clients print in full.
      console.error(`${walk.name} failed: ${error.stack}`, error.response?.data ?? error.data ?? "");
      process.exit(1);
    });
    const query = new URLSearchParams({ platform, account, accepted: "true" });
    const { entries } = await (await fetch(`${sandbox}/_journal?${query}`)).json();
    check(entries.length > 0, `${walk.name} published nothing`);
    console.log(`${walk.name} walked ${platform}: ${entries.length} publishing requests`);
  }
}

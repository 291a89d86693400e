// Publishes a post through the generated TypeScript client and waits until it is finished.
// Usage: publish BASE_URL KEY

import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type Post = components["schemas"]["Post"];

const [baseUrl, key] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

function check(holds: unknown, what: unknown): asserts holds {
  if (!holds) throw new Error(JSON.stringify(what));
}

async function ended(id: string): Promise<Post> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const { data, error } = await client.GET("/posts/{id}", { params: { path: { id } } });
    check(data, error);
    if (["published", "partial", "failed"].includes(data.status)) return data;
    check(Date.now() < deadline, data);
    await new Promise((wake) => setTimeout(wake, 100));
  }
}

async function main() {
  const created = await client.POST("/posts", {
    params: { header: { "Idempotency-Key": "typescript-client" } },
    body: { content: "From the TypeScript client", accounts: ["fanfare"] },
  });
  check(created.response.status === 201 && created.data, created.error);
  const post = await ended(created.data.id);
  check(post.status === "published" && post.targets[0]?.platform_post_url, post);

  const refused = await client.POST("/posts", { body: { content: "", accounts: [] } });
  check(refused.response.status === 400 && refused.error, refused.data);
  const paths = refused.error.errors?.map((issue) => issue.path.join(".")).sort();
  check(paths?.join() === "accounts,content", refused.error);
  console.log("the TypeScript client published", post.targets[0]?.platform_post_url);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});

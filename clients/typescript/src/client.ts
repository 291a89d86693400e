import { Api, type ClientOptions } from "./api.js";
import { Events } from "./events.js";
import { Resources } from "./generated/resources.js";
import { Media } from "./media.js";
import { Posts } from "./posts.js";

/** A client of the Fanfare API. Each property has the operations of a resource. */
export class Fanfare extends Resources {
  protected readonly api: Api;
  readonly events: Events;
  readonly media: Media;
  readonly posts: Posts;

  constructor(options: ClientOptions) {
    super();
    this.api = new Api(options);
    this.events = new Events(this.api);
    this.media = new Media(this.api);
    this.posts = new Posts(this.api);
  }
}

import type { User } from '../authentication/user.ts';

/** A question in the form of an object: it is posted, answered with its status filled in, and kept nowhere. */
export interface VirtualResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespaced: boolean;
  /** Judges the body and answers it. `namespace` is the one in the URL, empty if there is none. */
  answer(user: User, body: unknown, namespace: string): object | Promise<object>;
}

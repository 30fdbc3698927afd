import type { User } from '../authentication/user.ts';

/** A review: a client creates it and gets it back with its status. It is not stored. */
export interface VirtualResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespaced: boolean;
  /** The review in the body with its status. `namespace` is the one in the URL, empty if there is none. */
  answer(user: User, body: unknown, namespace: string): object | Promise<object>;
}

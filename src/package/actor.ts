/** Who asks: a person, a controller, a push. Always recorded. */
export interface Actor {
  readonly name: string;
  readonly groups?: readonly string[];
}

/** The way a request came in. `git` is a plain push by someone that Git does not authenticate to Sluice. */
export type Face = 'cli' | 'api' | 'controller' | 'git';

/** What goes with every change. */
export interface RequestContext {
  readonly actor: Actor;
  readonly face: Face;
  /** Why, in the words of the one who asks. */
  readonly reason?: string;
}

/**
 * A rule of a configuration object about functions of one image, beside the built-in ones. The first rule that matches counts.
 */
export interface FunctionRule {
  /** Image without registry and tag (`set-namespace`), or with its registry. */
  readonly image: string;
  /** Tags that it applies to; all if absent. */
  readonly tags?: readonly string[];
  readonly action:
    | { readonly type: 'builtIn'; readonly name: string }
    /** A program in the folder that is allowed for programs. */
    | { readonly type: 'exec'; readonly path: string }
    /** Runs as a container, with this digest (`sha256:…`) in place of the tag if one is given. */
    | { readonly type: 'container'; readonly digest?: string }
    | { readonly type: 'forbid'; readonly message: string };
}

export type FunctionRules = readonly FunctionRule[];

import { createHash } from 'node:crypto';
import type { KptFunction } from '../../../kptfile-schema/index.ts';
import { canonicalJson } from '../../foundation/text/canonical-json.ts';
import type { KrmFunction } from '../model/function.ts';
import type { FunctionRule, FunctionRules } from '../model/function-rules.ts';
import { type FunctionVersion, parseVersion } from '../model/function-version.ts';
import { completeImage, parseImageName, pinnedImage } from './image-name.ts';

/** The implementation of a function in a pipeline. */
export type ResolvedFunction =
  | { readonly type: 'builtIn'; readonly fn: KrmFunction; readonly version?: FunctionVersion }
  /** A program: as `exec` of a Kptfile has it, or a file in the folder that is allowed for programs. */
  | { readonly type: 'exec'; readonly path: string }
  /** Complete, with registry and tag or digest. */
  | { readonly type: 'container'; readonly image: string }
  | { readonly type: 'forbidden'; readonly message: string };

/** The functions that run in this process, by name. */
export class Catalog {
  readonly #functions = new Map<string, KrmFunction>();

  /** A function replaces an earlier one of the same name. */
  constructor(functions: readonly KrmFunction[]) {
    for (const fn of functions) this.#functions.set(fn.name, fn);
  }

  /**
   * Resolves an image: to the action of its first matching rule; to a built-in function of that name, with any registry
   * and tag; to a container otherwise. A function with `exec` is a program.
   */
  resolve({ image = '', tag, exec = '' }: KptFunction, rules: FunctionRules): ResolvedFunction {
    if (image === '') return { type: 'exec', path: exec };
    const complete = completeImage(image, tag);
    const rule = rules.find((each) => matches(each, image, complete));
    const { name, tag: completeTag = '' } = parseImageName(complete);
    const action = rule?.action ?? (this.#functions.has(name) ? { type: 'builtIn', name } : { type: 'container' });
    switch (action.type) {
      case 'builtIn': {
        const fn = this.#functions.get(action.name);
        if (fn !== undefined) {
          // An image with another name has its own version numbers.
          const version = action.name === name ? parseVersion(completeTag) : undefined;
          return { type: 'builtIn', fn, ...(version === undefined ? {} : { version }) };
        }
        const message = `a FunctionPolicy puts the built-in function ${JSON.stringify(action.name)} in its place, and there is no such function; correct the policy`;
        return { type: 'forbidden', message };
      }
      case 'exec':
        return { type: 'exec', path: action.path };
      case 'container':
        return {
          type: 'container',
          image: action.digest === undefined ? complete : pinnedImage(complete, action.digest),
        };
      case 'forbid':
        return { type: 'forbidden', message: action.message };
    }
  }

  /** Identity of the functions that run under these rules, for caches within this process. */
  functionsDigest(rules: FunctionRules): string {
    return createHash('sha256')
      .update(canonicalJson([[...this.#functions.keys()], rules]))
      .digest('hex');
  }
}

/** A rule may name the image as it is written, with its registry, or by its last part alone. */
function matches({ image, tags }: FunctionRule, written: string, complete: string): boolean {
  const { repository, name, tag } = parseImageName(complete);
  if (image !== name && image !== repository && image !== parseImageName(written).repository) return false;
  return tags === undefined || (tag !== undefined && tags.includes(tag));
}

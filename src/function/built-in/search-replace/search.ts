import type { RE2JS } from 're2js';
import { linearRegex } from '../../../foundation/text/linear-regex.ts';
import type { Resource } from '../../resource/resource.ts';
import { invalidConfig } from '../support/fields/function-config.ts';
import { pathGlob } from './path-glob.ts';
import { PathPattern } from './path-pattern.ts';

const KEYS = ['by-value', 'by-value-regex', 'by-path', 'by-file-path', 'put-value', 'put-comment'];

/** The matchers, and the values to write. */
export class Search {
  readonly putValue: string | undefined;
  readonly putComment: string | undefined;
  /** The keys of the one field that gets a value in every resource, even if it does not exist yet. */
  readonly place: readonly string[] | undefined;
  readonly #files: RE2JS | undefined;
  readonly #value: string | undefined;
  readonly #regex: RE2JS | undefined;
  readonly #path: PathPattern | undefined;

  /** Reads the data of the configuration. An empty text counts as absent. Throws InvalidInput. */
  constructor(config: Resource, data: ReadonlyMap<string, string>) {
    for (const key of data.keys())
      if (!KEYS.includes(key))
        throw invalidConfig(config, `invalid matcher ${JSON.stringify(key)}, must be one of ${KEYS.join(', ')}`);
    const given = (key: string) => data.get(key) || undefined;
    const path = given('by-path');
    const regex = given('by-value-regex');
    this.putValue = given('put-value');
    this.putComment = given('put-comment');
    const files = given('by-file-path');
    this.#files = files === undefined ? undefined : pathGlob(files, `${config.describe()}: by-file-path`);
    this.#value = given('by-value');
    if (this.#value !== undefined && regex !== undefined)
      throw invalidConfig(config, 'only one of by-value, by-value-regex can be provided');
    this.#regex = regex === undefined ? undefined : linearRegex(regex, `${config.describe()}: by-value-regex`);
    this.#path = path === undefined ? undefined : new PathPattern(path);
    if (!this.#byValue && path === undefined)
      throw invalidConfig(config, 'at least one of by-value, by-value-regex, by-path must be provided');
    if (path !== undefined && !this.#byValue && this.putValue !== undefined && /^(?:[^.*[]+\.)*[^.*[]+$/.test(path))
      this.place = path.split('.');
  }

  get #byValue(): boolean {
    return this.#value !== undefined || this.#regex !== undefined;
  }

  matchesFile(file: string): boolean {
    return this.#files === undefined || this.#files.test(file);
  }

  matchesScalar(text: string, path: () => string): boolean {
    if (this.#value !== undefined && this.#value !== text) return false;
    if (this.#regex !== undefined && !this.#regex.test(text)) return false;
    return this.#path === undefined || this.#path.matches(path());
  }

  /** A list as a whole is found by its path only. */
  matchesList(path: () => string): boolean {
    return !this.#byValue && this.#path?.matches(path()) === true;
  }

  /** Replaces `${1}`, `${2}` … by the texts of the groups; undefined if the expression has fewer groups. */
  resolve(pattern: string, text: string): string | undefined {
    if (this.#regex === undefined) return pattern;
    const groups = this.#regex.exec(text) ?? [];
    let missing = false;
    const resolved = pattern.replaceAll(/\$\{(\d+)\}/g, (_, digits: string) => {
      const at = Number(digits);
      if (at === 0 || at >= groups.length) missing = true;
      return (groups[at] as string | null | undefined) ?? '';
    });
    return missing ? undefined : resolved;
  }
}

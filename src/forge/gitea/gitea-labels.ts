import { Mutex } from '../../foundation/concurrency/mutex.ts';
import type { ForgeHttp } from '../http/forge-http.ts';
import { labelSchema, labelsSchema } from './gitea-schemas.ts';

const PAGE = 50;
const LABEL_COLOR = '#1d76db';

/** The labels of a repository on Gitea, which requests name by their ids. */
export class GiteaLabels {
  readonly #http: ForgeHttp;
  /** Of the repository. */
  readonly #path: string;
  /** Ids by name. */
  readonly #known = new Map<string, number>();
  readonly #labelling = new Mutex();

  constructor(http: ForgeHttp, path: string) {
    this.#http = http;
    this.#path = path;
  }

  /** Adds labels to a pull request or an issue that has those present, created where they do not exist. */
  async add(number: number, present: readonly string[], wanted: readonly string[], signal: AbortSignal): Promise<void> {
    const missing = wanted.filter((name) => !present.includes(name));
    if (missing.length === 0) return;
    const ids = await this.idsOf(missing, signal);
    try {
      await this.#http.send('POST', `${this.#path}/issues/${number}/labels`, { body: { labels: ids }, signal });
    } catch (error) {
      // One of them was deleted and created again.
      this.forget();
      throw error;
    }
  }

  /** The ids of labels, created where they do not exist. One after the other: Gitea makes a second label of the same name. */
  idsOf(names: readonly string[], signal: AbortSignal): Promise<readonly number[]> {
    return this.#labelling.run(() => this.#labelIds(names, signal));
  }

  async #labelIds(names: readonly string[], signal: AbortSignal): Promise<readonly number[]> {
    const known = this.#known;
    for (let page = 1; !names.every((name) => known.has(name)); page += 1) {
      const path = `${this.#path}/labels?page=${page}&limit=${PAGE}`;
      const labels = await this.#http.json(labelsSchema, 'GET', path, { signal });
      for (const { id, name } of labels) known.set(name, id);
      if (labels.length === 0) break;
    }
    const ids: number[] = [];
    for (const name of names) {
      const body = { name, color: LABEL_COLOR };
      const id =
        known.get(name) ?? (await this.#http.json(labelSchema, 'POST', `${this.#path}/labels`, { body, signal })).id;
      known.set(name, id);
      ids.push(id);
    }
    return ids;
  }

  /** One was deleted, and possibly created again. */
  forget(): void {
    this.#known.clear();
  }
}

import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitHubClient } from './github-client.ts';
import { anySchema } from './github-schemas.ts';

const LABEL_COLOR = '1d76db';

const MAX_KNOWN = 1000;

/** Labels of one repository. */
export class GitHubLabels {
  readonly #client: GitHubClient;
  readonly #repository: { readonly owner: string; readonly repo: string };
  /** Those that the repository had once, in lower case. Where one was deleted since, GitHub creates it with a colour of its own. */
  readonly #known = new Set<string>();

  constructor(client: GitHubClient, repository: { readonly owner: string; readonly repo: string }) {
    this.#client = client;
    this.#repository = repository;
  }

  /** Adds labels to a pull request or an issue that has the `present` ones, created where they do not exist. */
  async add(number: number, present: readonly string[], wanted: readonly string[], signal: AbortSignal): Promise<void> {
    // Names of labels are case-insensitive.
    const has = new Set(present.map((name) => name.toLowerCase()));
    const missing = wanted.filter((name) => !has.has(name.toLowerCase()));
    if (missing.length === 0) return;
    for (const name of missing) {
      if (this.#known.has(name.toLowerCase())) continue;
      await createLabel(this.#client, { ...this.#repository, name }, signal);
      if (this.#known.size < MAX_KNOWN) this.#known.add(name.toLowerCase());
    }
    await this.#client.call(anySchema, signal, ({ issues }, options) =>
      issues.addLabels({ ...this.#repository, issue_number: number, labels: missing, ...options }),
    );
  }
}

/** Creates a label unless there is one. */
async function createLabel(
  client: GitHubClient,
  label: { readonly owner: string; readonly repo: string; readonly name: string },
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.call(anySchema, signal, ({ issues }, options) => issues.getLabel({ ...label, ...options }));
    return;
  } catch (error) {
    if (!isSluiceError(error, 'NotFound')) throw error;
  }
  try {
    await client.call(anySchema, signal, ({ issues }, options) =>
      issues.createLabel({ ...label, color: LABEL_COLOR, ...options }),
    );
  } catch (error) {
    // Created meanwhile; or not valid, which adding it reports.
    if (!isSluiceError(error, 'InvalidInput')) throw error;
  }
}

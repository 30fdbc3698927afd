import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitHubClient } from './github-client.ts';
import { anySchema } from './github-schemas.ts';

const LABEL_COLOR = '1d76db';

interface Labelled {
  readonly owner: string;
  readonly repo: string;
  readonly number: number;
  /** What it has already. */
  readonly present: readonly string[];
}

/** Adds labels to a pull request or an issue, created where they do not exist. */
export async function addLabels(
  client: GitHubClient,
  { number, present, ...repository }: Labelled,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  // Names of labels are case-insensitive.
  const known = new Set(present.map((name) => name.toLowerCase()));
  const missing = wanted.filter((name) => !known.has(name.toLowerCase()));
  if (missing.length === 0) return;
  for (const name of missing) await createLabel(client, { ...repository, name }, signal);
  await client.call(anySchema, signal, ({ issues }, options) =>
    issues.addLabels({ ...repository, issue_number: number, labels: missing, ...options }),
  );
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

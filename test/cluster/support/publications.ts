import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { sluice } from '../../support/cli.ts';

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 1 << 28;

export interface Publication {
  readonly package: string;
  readonly workspace: string;
  readonly revision: number;
  /** The steps of its record, such as `propose`. */
  readonly steps: readonly string[];
}

/** The publications in the history of a branch, oldest first, as their signed statements name them. */
export async function readPublications(gitFolder: string, branch = 'main'): Promise<readonly Publication[]> {
  const log = await git(gitFolder, 'log', '--reverse', '--first-parent', '--format=%B%x00', branch);
  return log.split('\0').flatMap((message) => {
    const line = /^Sluice-Statement: (.*)$/m.exec(message)?.[1];
    if (line === undefined) return [];
    const statement = JSON.parse(line) as {
      readonly kind: string;
      readonly package: string;
      readonly workspace: string;
      readonly revision: number;
      readonly record: { readonly steps: readonly { readonly action: string }[] };
    };
    if (statement.kind !== 'publication') return [];
    const { package: name, workspace, revision, record } = statement;
    return [{ package: name, workspace, revision, steps: record.steps.map(({ action }) => action) }];
  });
}

/** Names of refs below a prefix. */
export async function readRefs(gitFolder: string, prefix: string): Promise<readonly string[]> {
  return (await git(gitFolder, 'for-each-ref', '--format=%(refname)', prefix)).split('\n').filter(Boolean);
}

/** The output of `sluice verify`, with one key that counts. Throws if something does not count. */
export async function verifyStatements(gitFolder: string, publicKey: string): Promise<string> {
  const file = `${gitFolder}.allowed-signers`;
  await writeFile(file, `sluice namespaces="statement@sluice.dev" ${publicKey}\n`);
  const { code, stdout, stderr } = await sluice(['verify', gitFolder, '--allowed-signers', file], { timeout: 120_000 });
  if (code !== 0) throw new Error(`sluice verify ended with ${code}:\n${stdout}${stderr}`);
  return stdout;
}

/** Every pair that occurs more than once. */
export function repeated(values: readonly string[]): readonly string[] {
  const seen = new Set<string>();
  return values.filter((value) => seen.size === seen.add(value).size);
}

async function git(folder: string, ...words: string[]): Promise<string> {
  const { stdout } = await run('git', ['--git-dir', folder, ...words], { maxBuffer: MAX_OUTPUT_BYTES });
  return stdout;
}

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** Characters without a meaning in a shell, in the configuration of ssh, and in that of git. */
const PLAIN_PATH = /^\/[A-Za-z0-9._/+-]*$/;

/**
 * Writes files that no other user can read into a temporary folder, for a program that accepts secrets in no other way, and removes
 * them when `use` has ended. The paths contain no character with a meaning in a shell. Throws Unsupported if the path of the system's
 * temporary folder does.
 */
export async function withPrivateFiles<Result>(
  files: Readonly<Record<string, string>>,
  use: (folder: string) => Promise<Result>,
): Promise<Result> {
  const place = tmpdir();
  if (!PLAIN_PATH.test(place))
    throw new SluiceError(
      'Unsupported',
      `cannot pass a key to ssh through the folder ${JSON.stringify(place)}: set TMPDIR to an absolute path of letters, digits and ._+-`,
    );
  const folder = await mkdtemp(join(place, 'sluice-'));
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

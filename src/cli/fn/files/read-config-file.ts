import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { readResources } from '../../../function/resource/read-resources.ts';
import type { Resource } from '../../../function/resource/resource.ts';
import { printable } from '../../output/printable.ts';

/** The one resource of a file, for a function's configuration. */
export async function readConfigFile(path: string): Promise<Resource> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot read the configuration ${printable(path)}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const { resources, notes } = readResources(new Map([[`${basename(path)}.yaml`, text]]));
  const [only, ...others] = resources;
  if (only === undefined || others.length > 0 || notes.length > 0)
    throw new SluiceError(
      'InvalidInput',
      `${printable(path)}: a configuration is a file with exactly one resource${notes.map((note) => `; ${printable(note)}`).join('')}`,
    );
  return only;
}

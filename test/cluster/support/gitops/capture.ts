import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KubeObject } from '../../../support/api/kube-api.ts';

const FOLDER = new URL('../../gitops/captured/', import.meta.url);

/**
 * Keeps an object as an engine left it, as input for tests of those who read it, if SLUICE_CAPTURE is set. `name` is a path without the suffix.
 */
export function capture(name: string, object: KubeObject | undefined): void {
  if (process.env.SLUICE_CAPTURE === undefined) return;
  if (object === undefined) throw new Error(`there is no object for ${name}`);
  const { managedFields: _, ...metadata } = object.metadata;
  const file = fileURLToPath(new URL(`${name}.json`, FOLDER));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ ...object, metadata }, null, 2)}\n`);
}

import { SluiceError } from '../../src/foundation/sluice-error.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { anna } from './scratch-repository.ts';

/** A Kptfile with a gate whose condition is True, as a user may push it. */
export const KPTFILE = [
  'apiVersion: kpt.dev/v1',
  'kind: Kptfile',
  'metadata:',
  '  name: shop',
  'info:',
  '  readinessGates:',
  '    - conditionType: tested',
  'status:',
  '  conditions:',
  '    - type: tested',
  '      status: "True"',
  '',
].join('\n');

/** Makes a draft of a new package and returns its name. */
export async function draft(store: RevisionStore, packageName = 'shop', workspace = 'v1'): Promise<string> {
  const source = { type: 'init', description: 'a shop' } as const;
  return (await store.create('packages', { package: packageName, workspace, source }, anna)).name;
}

export async function publish(store: RevisionStore, name: string): Promise<void> {
  await store.update(name, { action: 'propose' }, anna);
  await store.update(name, { action: 'approve' }, anna);
}

/** `succeeded`, or the code and message of the SluiceError that it ended with; anything else is thrown on. */
export async function outcomeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof SluiceError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'succeeded';
}

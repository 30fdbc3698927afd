import { expect, test } from 'vitest';
import type { DeliveredPackage } from '../../src/delivery/delivered/delivered-package.ts';
import { BranchFiles } from '../../src/delivery/tree/branch-files.ts';
import { unknownPackages } from './unknown-packages.ts';

const WEB: DeliveredPackage = { repository: 'apps', package: 'web', revision: 2, commit: 'c', tree: 't' };
const DRIFTED = { ...WEB, drifted: true };
const LIST = 'clusters/edge/web/kustomization.yaml';
const FILE = 'clusters/edge/web/cm.yaml';

/** Blobs and submodules by path, with the owner that they name. */
type Files = Record<string, null | { target?: string; repository?: string; package?: string; revision?: number }>;

function find(files: Files, known: readonly DeliveredPackage[], delivered: readonly string[] = []) {
  const present = Object.entries(files).map(([path, owner]) => {
    const named = { target: 'edge', repository: 'apps', package: 'web', revision: 2, ...owner };
    return [path, owner === null ? { oid: 'o' } : { oid: 'o', owner: named }] as const;
  });
  return unknownPackages({
    ...{ target: 'edge', known, delivered: new Set(delivered), readable: new Set(['infra']) },
    files: BranchFiles.of('clusters/edge', new Map(present)),
  });
}

test.each<[string, Files, unknown[]]>([
  ['as delivered', { [LIST]: {}, [FILE]: null }, [WEB]],
  ['without files', {}, []],
  ['with another revision', { [LIST]: { revision: 1 }, [FILE]: null }, [DRIFTED]],
  ['without a list', { [FILE]: null }, [DRIFTED]],
  ['of another target', { [LIST]: { target: 'west' }, [FILE]: null }, [DRIFTED]],
  ['that is a link or a submodule', { 'clusters/edge/web': null }, [DRIFTED]],
  ['that claims another repository', { [LIST]: { repository: 'infra' }, [FILE]: null }, [DRIFTED]],
])('a folder %s', (_, files, expected) => {
  expect(find(files, [WEB])).toEqual(expected);
});

test('a package around others, and one below a link', () => {
  const inner = { 'clusters/edge/web/in/kustomization.yaml': { repository: 'infra', package: 'web/in' } };
  expect(find(inner, [WEB], ['infra/web/in'])).toEqual([]);
  expect(find({ ...inner, [FILE]: null }, [WEB], ['infra/web/in'])).toEqual([DRIFTED]);
  const below = { ...WEB, package: 'web/in' };
  expect(find({ 'clusters/edge/web': null }, [below])).toEqual([{ ...below, drifted: true }]);
});

test('a folder that a package of another repository has taken over', () => {
  expect(find({ [LIST]: { repository: 'infra' }, [FILE]: null }, [WEB], ['infra/web'])).toEqual([]);
});

test('of a folder without a record Sluice does not know what it delivered; an emptied one deploys nothing', () => {
  expect(find({ [LIST]: {}, [FILE]: null }, [])).toEqual([{ ...DRIFTED, commit: '', tree: '' }]);
  expect(find({ [LIST]: {} }, [])).toEqual([]);
  expect(find({ [LIST]: { target: 'west' }, [FILE]: null }, [])).toEqual([]);
});

test('packages of other repositories are known', () => {
  const db = { ...WEB, repository: 'infra' };
  expect(find({ [LIST]: { repository: 'infra' }, [FILE]: null }, [db])).toEqual([]);
});

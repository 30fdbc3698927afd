import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';

export const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: # kpt-merge: /web
  name: web
  namespace: before # of the package
spec:
    replicas: 1
`;

export const KPTFILE = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: shop
# what is done to it
pipeline:
  mutators:
    - image: gcr.io/kpt-fn/set-namespace:v0.4.1
      configMap:
        namespace: blog
`;

/** A folder for the tests of a file, which is removed after them. */
export function scratch() {
  let top = '';
  let count = 0;
  beforeAll(async () => {
    top = await mkdtemp(join(tmpdir(), 'sluice-fn-'));
  });
  afterAll(() => rm(top, { recursive: true, force: true }));
  const newPath = () => join(top, `case${count++}`);
  return {
    /** A path that does not exist. */
    newPath,
    /** A folder "shop" with these files. */
    async folder(files: Readonly<Record<string, string>>): Promise<string> {
      const path = join(newPath(), 'shop');
      for (const [name, text] of Object.entries(files)) {
        await mkdir(dirname(join(path, name)), { recursive: true });
        await writeFile(join(path, name), text);
      }
      return path;
    },
  };
}

export const read = (path: string, name: string) => readFile(join(path, name), 'utf8');

/** A Kptfile of a package in another one. */
export const NESTED = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: db
pipeline:
  mutators:
    - image: set-labels:v0.2
      configMap: { tier: data }
`;

/** The Kptfile of a package whose second function fails. */
export const FAILING = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: shop
pipeline:
  mutators:
    - image: set-namespace
      configMap: { namespace: blog }
    - image: apply-replacements
      configPath: missing.yaml
`;

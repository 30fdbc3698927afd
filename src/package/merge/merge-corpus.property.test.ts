import { expect, test } from 'vitest';
import { type CorpusPackage, corpusMissing, corpusPackages } from '../../../test/support/corpus.ts';
import { runs } from '../../../test/support/runs.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { markResources } from './mark-resources.ts';
import { mergePackage } from './merge-package.ts';
import type { PackageFiles } from './package-files.ts';

test('real packages: only what upstream changed changes', skipFor(corpusMissing), () => {
  const edited = ({ files: real }: CorpusPackage, pattern: RegExp, line: string): PackageFiles =>
    new Map(
      [...real].map(([path, data]) => {
        const text = data.toString('utf8');
        const isResource = /\.ya?ml$/.test(path);
        return [
          path,
          { data: isResource ? Buffer.from(text.replaceAll(pattern, (found) => `${found}\n${line}`)) : data },
        ];
      }),
    );
  const packages = corpusPackages();
  const step = Math.ceil(packages.length / runs(packages.length, 3));
  for (const one of packages.filter((_, index) => index % step === 0)) {
    const original = new Map([...one.files].map(([path, data]) => [path, { data }]));
    const updated = edited(one, /^apiVersion: .*$/gm, 'upstream: 0755');
    const local = markResources(edited(one, /^kind: .*$/gm, 'local: 1.10'));
    const { files: merged, keptLocal } = mergePackage(local, original, updated);
    for (const [path, { data }] of merged) {
      const text = data.toString('utf8');
      if (keptLocal.includes(path) || !/\.ya?ml$/.test(path))
        expect([path, text]).toEqual([path, local.get(path)?.data.toString('utf8')]);
      else
        expect([path, text.replaceAll('upstream: 0755\n', '')]).toEqual([path, local.get(path)?.data.toString('utf8')]);
    }
    expect([...merged.values()].filter(({ data }) => data.includes('upstream: 0755')).length).toBeGreaterThan(0);
  }
});

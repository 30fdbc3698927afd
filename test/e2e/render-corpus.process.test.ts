import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { table } from '../../src/cli/output/table.ts';
import { runCli } from '../../src/cli/testing.ts';
import { type CorpusPackage, corpusMissing, corpusPackages } from '../support/corpus.ts';
import { skipFor } from '../support/skip.ts';

async function copyOf(pack: CorpusPackage, top: string): Promise<string> {
  const folder = join(top, pack.name);
  for (const [path, data] of pack.files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), data);
  }
  return folder;
}

async function contents(folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    found.set(path.slice(folder.length + 1), await readFile(path, 'latin1'));
  }
  return found;
}

/** Number of occurrences of a text in the Kptfiles of a package. */
function countOf(files: CorpusPackage['files'], text: string): number {
  const kptfiles = [...files].filter(([path]) => path === 'Kptfile' || path.endsWith('/Kptfile'));
  return kptfiles.reduce((sum, [, data]) => sum + data.toString().split(text).length - 1, 0);
}

/** Short names of images in lines of an output. */
function imagesIn(output: string, label: string): string[] {
  const lines = output.split('\n').filter((line) => line.startsWith(`[${label}] `));
  return lines.map((line) => (/"([^"]*)"/.exec(line)?.[1] ?? '').replace(/.*\//, '').replace(/[:@].*/, ''));
}

describe('real packages', skipFor(corpusMissing), () => {
  test('render on the command line, or report in one line what cannot run here', async () => {
    const top = await mkdtemp(join(tmpdir(), 'sluice-render-'));
    try {
      const packages = corpusPackages();
      expect(packages.length).toBeGreaterThan(10);
      const rows: string[][] = [];
      let replacements = 0;
      for (const pack of packages) {
        const folder = await copyOf(pack, top);
        const before = await contents(folder);
        // Nothing is fetched, so only built-in functions run, on every machine.
        const render = () => runCli(['fn', 'render', folder, '--image-pull-policy', 'never']);
        const first = await render();
        const after = await contents(folder);
        const last = first.stderr.trimEnd().split('\n').at(-1) ?? '';
        const changed = [...after].filter(([path, text]) => before.get(path) !== text).map(([path]) => path);
        rows.push([pack.name, imagesIn(first.stderr, 'PASS').join(' '), changed.join(' '), last]);
        expect(first.stdout).toBe('');
        if (first.code === 0) {
          expect(last).toMatch(/^Successfully executed \d+ function\(s\) in \d+ package\(s\)\.$/);
        } else {
          // Only Nephio's own functions stop a package, and then nothing changes but the status.
          expect(first.code).toBe(1);
          expect(last).toMatch(/^error: /);
          expect(last).toContain('docker.io/nephio/');
          expect(changed).toEqual(['Kptfile']);
        }
        // Nephio's packages name fields that some resources lack, and pin a version that skips them.
        const named = countOf(pack.files, 'apply-replacements:v0.1.1');
        expect(imagesIn(first.stderr, 'PASS').filter((name) => name === 'apply-replacements')).toHaveLength(named);
        replacements += named;
        const second = await render();
        expect(second.code, second.stderr).toBe(first.code);
        expect(await contents(folder), `${pack.name} rendered twice`).toEqual(after);
      }
      expect(replacements).toBeGreaterThanOrEqual(9);
      console.log(table(['Package', 'Functions that ran', 'Files that changed', 'Says'], rows));
      expect(rows.filter(([, , , last = '']) => last.startsWith('Success')).length).toBeGreaterThan(
        packages.length / 2,
      );
    } finally {
      await rm(top, { recursive: true, force: true });
    }
  });
});

import { expect, test } from 'vitest';
import { PackageRefused } from '../refusal.ts';
import { checkKustomizations } from './check-kustomization.ts';

function outcomeOf(kustomization: string, more: Record<string, string> = {}): string {
  const files = {
    'kustomization.yaml': kustomization,
    'cm.yaml': 'a: b\n',
    'base/kustomization.yaml': '{}\n',
    ...more,
  };
  try {
    checkKustomizations(new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])));
    return 'accepted';
  } catch (error) {
    if (error instanceof PackageRefused) return `${error.reason}: ${error.message}`;
    throw error;
  }
}

test.each([
  'resources: [cm.yaml, ./base]',
  'resources: [base/../cm.yaml]\ngenerators: []',
  'configMapGenerator: [{name: a, files: [cm.yaml, x=base/../cm.yaml], envs: [cm.yaml]}]',
  'patches: [{path: cm.yaml}]\ncommonAnnotations: {url: "https://example.com"}',
  'configMapGenerator: [{name: a, literals: ["url=https://example.com"]}]',
  'images: [{name: web, newName: "localhost:5000/web"}]',
  'patches: [{patch: "- op: add\\n  value: https://example.com"}]',
])('%s is rendered', (text) => {
  expect(outcomeOf(text)).toBe('accepted');
});

test.each([
  ['resources: ["https://example.com/a.yaml"]', 'is no file or folder of the package'],
  ['resources: [github.com/org/repo//base?ref=main]', 'is no file or folder of the package'],
  ['Resources: [github.com/org/repo]', 'is no file or folder of the package'],
  ['resources: ["git@example.com:a/b.git"]', 'is no file or folder of the package'],
  ['bases: [../other]', 'is no file or folder of the package'],
  ['components: [/etc]', 'is no file or folder of the package'],
  ['resources: [missing.yaml]', 'is no file or folder of the package'],
  ['resources: [{a: b}]', 'is no file or folder of the package'],
  ['patches: [{path: "https://127.0.0.1/p.yaml"}]', 'is a remote address'],
  ['patchesStrategicMerge: [" HTTP://127.0.0.1/p.yaml"]', 'is a remote address'],
  ['configMapGenerator: [{name: a, files: ["k=v"]}]', 'is no file of the package'],
  ['configMapGenerator: [{name: a, files: ["x=http://127.0.0.1:9911/secret"]}]', 'is no file of the package'],
  ['SecretGenerator: [{name: a, envs: ["/etc/passwd"]}]', 'is no file of the package'],
  ['configMapGenerator: [{name: a, env: "https://127.0.0.1/e"}]', 'is a remote address'],
  ['configMapGenerator: {files: ["x= HTTP://127.0.0.1:9911/secret"]}', 'is a remote address'],
  ['openapi: {path: "http:example.com"}', 'is a remote address'],
  ['helmCharts: [{name: a, repo: "https://example.com"}]', 'plugins are not run'],
  ['HelmCharts: [{name: a}]', 'plugins are not run'],
  ['transformers: [cm.yaml]', 'plugins are not run'],
])('%s is refused', (text, why) => {
  expect(outcomeOf(text)).toMatch(/^RemoteResource: kustomization\.yaml: /);
  expect(outcomeOf(text)).toContain(why);
});

test('kustomizations below the root are checked too, and broken ones are reported with their line', () => {
  expect(outcomeOf('{}', { 'base/kustomization.yaml': 'resources: ["https://example.com"]' })).toContain(
    'RemoteResource: base/kustomization.yaml',
  );
  expect(outcomeOf('a: [')).toMatch(/^InvalidManifest: kustomization\.yaml:\d/);
});

test('aliases of aliases are checked once each', () => {
  const levels = Array.from({ length: 30 }, (_, level) => {
    const next = Array.from({ length: 10 }, () => `*n${level}`).join(', ');
    return `x${level + 1}: &n${level + 1} [${next}]`;
  });
  expect(outcomeOf(['x0: &n0 text', ...levels].join('\n'))).toBe('accepted');
});

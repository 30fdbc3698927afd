import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { expect, onTestFinished, test } from 'vitest';
import { Metrics } from '../../src/server/metrics/metrics.ts';
import { NO_LOAD } from '../../src/server/metrics/request-metrics.ts';
import { skipFor } from '../support/skip.ts';

const run = promisify(execFile);

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Groups {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

const MANIFEST = new URL('../../deploy/components/monitoring/prometheus-rule.yaml', import.meta.url);
const { spec } = load(readFileSync(MANIFEST, 'utf8')) as { readonly spec: Groups };
const ALERTS = spec.groups.flatMap(({ rules }) => rules);

test('alerts are about metrics that Sluice has', async () => {
  const metrics = new Metrics({
    ...{ load: () => NO_LOAD, queues: () => new Map(), revisions: () => [] },
    quota: () => ({ exceeded: 0, usage: () => [] }),
    leadership: () => new Map(),
    canSign: () => true,
    unread: () => [],
  });
  const response = await metrics.paths({ path: '/metrics' } as Parameters<typeof metrics.paths>[0]);
  const names = [...String(response?.body).matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
  expect(ALERTS).toHaveLength(8);
  for (const { alert, expr } of ALERTS) {
    const used = [...expr.matchAll(/(\w+)\{/g)].map(([, name = '']) => name.replace(/_bucket$/, ''));
    expect(used, alert).not.toEqual([]);
    for (const name of used) expect(names, alert).toContain(name);
  }
});

test('alerts fire when they should, and not before', skipFor(whyNoPromtool()), async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // The tests compare all annotations, and a description is a constant text.
  const groups = spec.groups.map((group) => ({
    ...group,
    rules: group.rules.map((rule) => ({ ...rule, annotations: { summary: rule.annotations.summary } })),
  }));
  writeFileSync(join(folder, 'rules.yaml'), JSON.stringify({ groups }));
  cpSync(fileURLToPath(new URL('alerts.yaml', import.meta.url)), join(folder, 'alerts.yaml'));
  const tested = await run('promtool', ['test', 'rules', 'alerts.yaml'], { cwd: folder });
  expect(tested.stdout).toContain('SUCCESS');
});

/** Debian's package `prometheus` has it. */
function whyNoPromtool(): string | undefined {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'promtool is not installed';
  }
}

import { expect, test } from 'vitest';
import { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { PUBLIC_NETWORK } from '../../../src/git/network/git-network.ts';
import { HostRules } from '../../../src/git/network/host-rules.ts';
import { wavePlanKind } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { httpProbe, probeAddress, verifyByProbe } from './probe-target.ts';
import { verifyDeployed } from './verify-target.ts';

const WEB = { key: { repository: 'apps', package: 'web', workspace: 'w' }, revision: 2 };
const ENGINE = { selector: { repositories: ['apps'] }, engine: {} };
const delivered = (revision: number) => [{ repository: 'apps', package: 'web', revision, commit: 'c', tree: 't' }];

function target(status: object, spec: object = ENGINE, metadata: object = {}) {
  const full = { packages: delivered(2), lastCommit: 'x', ...status };
  return { metadata: { name: 'edge', namespace: 'default', ...metadata }, spec, status: full } as never;
}

function report(synced: string, healthy: string, reason = 'Reported') {
  const state = (status: string) => ({ status, reason, message: '', since: '2026-01-01T00:00:00Z' });
  const both = { synced: state(synced), healthy: state(healthy) };
  return { deployment: { commit: 'x', delivered: state('True'), ...both, common: both } };
}

const HEALTHY = report('True', 'True');
const common = { delivered: new DeliveredPackages(), repository: undefined };
const verification = (targets: readonly never[], names?: readonly string[]) =>
  verifyDeployed(WEB, { ...common, targets, names });
const verify = (...targets: never[]) => verification(targets).result;

test('a revision is verified by what the engines of its targets report, the worst of them', () => {
  expect(verify()).toBe('Pending');
  expect(verify(target(HEALTHY))).toBe('Verified');
  expect(verify(target(HEALTHY), target(report('True', 'False')))).toBe('Degraded');
  expect(verify(target(report('False', 'False')))).toBe('Pending');
  expect(verify(target(report('Unknown', 'Unknown', 'Unreachable')))).toBe('Unreachable');
  expect(verify(target({}, { selector: {} }))).toBe('Unreachable');
  // A report about the delivery before says nothing.
  expect(verify(target({ ...HEALTHY, lastCommit: 'y' }))).toBe('Unreachable');
  const rollbacks = [{ repository: 'apps', package: 'web', from: 2, to: 1, reason: 'crash' }];
  expect(verify(target({ ...HEALTHY, rollbacks }))).toBe('Failed');
  expect(verify(target({ ...HEALTHY, packages: delivered(1) }))).toBe('Pending');
});

const ready = (reason: string, message: string) => ({
  conditions: [{ type: 'Ready', status: 'False', reason, message }],
});
const west = (status: object = {}, spec: object = {}, metadata: object = {}) =>
  target({ packages: [], ...status }, { ...ENGINE, ...spec }, { name: 'west', ...metadata });
const PIN = { repository: 'apps', package: 'web', revision: 1 };

test.each<[string, never, string, string]>([
  ['has delivered nothing', west(), 'Pending', 'target west does not deliver v2 yet'],
  ['has the revision before', west({ ...HEALTHY, packages: delivered(1) }), 'Pending', 'does not deliver v2 yet'],
  [
    'cannot be reached',
    west(ready('Error', 'https://x/west.git responded with status 404')),
    ...(['Unreachable', 'target west does not deliver v2 yet: https://x/west.git responded with status 404'] as const),
  ],
  ['is suspended', west({}, { suspend: true }), 'Unreachable', 'it is suspended (spec.suspend)'],
  [
    'is frozen',
    west(ready('Frozen', 'nothing is delivered: freeze core')),
    ...(['Pending', 'does not deliver v2 yet: nothing is delivered: freeze core'] as const),
  ],
  [
    'does not take what was published out of band',
    west(
      ready('Partial', '0 packages are delivered; apps/db: Unreadable: x; apps/web: OutOfBand: v2 was not approved'),
    ),
    ...(['Pending', 'target west does not deliver v2 yet: OutOfBand: v2 was not approved'] as const),
  ],
  [
    'has no branch',
    west(ready('BranchMissing', 'branch main does not exist')),
    ...(['Pending', 'does not deliver v2 yet: branch main does not exist'] as const),
  ],
  ['waits for a merge', west(ready('WaitsForMerge', 'x')), 'Pending', 'does not deliver v2 yet: WaitsForMerge'],
  ['has no engine', west({}, { engine: undefined }), 'Pending', 'target west does not deliver v2 yet'],
  ['is pinned to another one without having it', west({}, { pins: [PIN] }), 'Pending', 'does not deliver v1 yet'],
  ['is pinned to this revision', west({}, { pins: [{ ...PIN, revision: 2 }] }), 'Pending', 'does not deliver v2 yet'],
])('a target that selects the package, and %s, keeps it from being verified', (_, missing, result, message) => {
  const found = verification([target(HEALTHY), missing]);
  expect(found).toMatchObject({ result, message: expect.stringContaining(message) });
});

test.each<[string, (count: number) => string]>([
  ['Partial', (count) => `${count} packages are delivered; apps/db: OutOfBand: v${count} was not approved`],
  ['WaitsForMerge', (count) => `${count} packages are delivered; pull request ${count} waits`],
])('what a target that is %s says about other packages changes no reason', (reason, message) => {
  const of = (count: number) => verification([west(ready(reason, message(count)))]);
  expect(of(1)).toEqual({ result: 'Pending', message: `target west does not deliver v2 yet: ${reason}` });
  expect(of(2)).toEqual(of(1));
});

test.each<[string, never]>([
  ['does not select it', west({}, { selector: { repositories: ['other'] } })],
  [
    'selects it no longer and still has the revision before',
    west({ packages: delivered(1) }, { selector: { packages: ['x'] } }),
  ],
  ['has it at another revision by a pin', west({ packages: delivered(1) }, { pins: [PIN] })],
  ['is being deleted', west({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
])('a target that %s is not waited for, unless the plan names it', (_, other) => {
  expect(verify(target(HEALTHY), other)).toBe('Verified');
  expect(verify(other)).toBe('Pending');
  expect(verification([target(HEALTHY), other], ['edge', 'west'])).toMatchObject({
    result: 'Pending',
    message: expect.stringContaining('west'),
  });
});

test('labels select the targets that are waited for by the revision', () => {
  const selector = { packageSelector: { matchLabels: { tier: 'edge' } } };
  const labelled = { ...WEB, record: { labels: { tier: 'edge' } } as never };
  const options = { ...common, targets: [target(HEALTHY), west({}, { selector })], names: undefined };
  expect(verifyDeployed(WEB, options).result).toBe('Verified');
  expect(verifyDeployed(labelled, options).result).toBe('Pending');
});

test('an address gets the names of a target; a package decides no domain', () => {
  const at = (url: string, path = 'a/web') => probeAddress(url, { repository: 'edge', package: path });
  expect(at('https://{repository}.example.com/{package}/{name}')).toBe('https://edge.example.com/a/web/web');
  expect(() => at('https://x/{package}', 'a/../../b')).toThrow(/cannot be part of an address/);
  const plan = (url: string) =>
    wavePlanKind.complete({
      metadata: { name: 'x' },
      spec: { waves: [{ name: 'all', percent: 100 }], verification: { http: { url } } },
    });
  expect(plan('https://{name}.example.com/x').spec.verification.http?.interval).toBe('30s');
  for (const url of ['https://{package}.example.com/', 'https://{name}/', 'https://x.{name}/', 'https://u@x.com/'])
    expect(() => plan(url), url).toThrow(/verification.http.url/);
});

test('a probe follows the rules for hosts, and no redirect', async () => {
  const { signal } = new AbortController();
  const refused = await verifyByProbe(httpProbe(PUBLIC_NETWORK), 'http://127.0.0.1:1/x', signal);
  expect(refused).toMatchObject({ result: 'Unreachable', message: expect.stringContaining('local address') });
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/ok' ? 204 : 302, { location: '/ok' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as { readonly port: number };
    const probe = httpProbe({ hosts: new HostRules(['127.0.0.1']) });
    const results = await Promise.all(
      ['ok', 'moved'].map((path) => verifyByProbe(probe, `http://127.0.0.1:${port}/${path}`, signal)),
    );
    expect(results.map(({ result }) => result)).toEqual(['Verified', 'Degraded']);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

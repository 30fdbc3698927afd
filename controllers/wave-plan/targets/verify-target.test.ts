import { expect, test } from 'vitest';
import { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import { PUBLIC_NETWORK } from '../../../src/git/network/git-network.ts';
import { HostRules } from '../../../src/git/network/host-rules.ts';
import { wavePlanKind } from '../../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { httpProbe, probeAddress, verifyByProbe } from './probe-target.ts';
import { verifyDeployed } from './verify-target.ts';

const WEB = { key: { repository: 'apps', package: 'web', workspace: 'w' }, revision: 2 };

function target(status: object, spec: object = { engine: {} }) {
  const packages = [{ repository: 'apps', package: 'web', revision: 2, commit: 'c', tree: 't' }];
  const full = { packages, lastCommit: 'x', ...status };
  return { metadata: { name: 'edge', namespace: 'default' }, spec, status: full } as never;
}

function report(synced: string, healthy: string, reason = 'Reported') {
  const state = (status: string) => ({ status, reason, message: '', since: '2026-01-01T00:00:00Z' });
  const both = { synced: state(synced), healthy: state(healthy) };
  return { deployment: { commit: 'x', delivered: state('True'), ...both, common: both } };
}

const verify = (...targets: never[]) => verifyDeployed(WEB, undefined, targets, new DeliveredPackages()).result;

test('a revision is verified by what the engines of its targets report, the worst of them', () => {
  expect(verify()).toBe('Pending');
  expect(verify(target(report('True', 'True')))).toBe('Verified');
  expect(verify(target(report('True', 'True')), target(report('True', 'False')))).toBe('Degraded');
  expect(verify(target(report('False', 'False')))).toBe('Pending');
  expect(verify(target(report('Unknown', 'Unknown', 'Unreachable')))).toBe('Unreachable');
  expect(verify(target({}, {}))).toBe('Unreachable');
  // A report about the delivery before says nothing.
  expect(verify(target({ ...report('True', 'True'), lastCommit: 'y' }))).toBe('Unreachable');
  const rollbacks = [{ repository: 'apps', package: 'web', from: 2, to: 1, reason: 'crash' }];
  expect(verify(target({ ...report('True', 'True'), rollbacks }))).toBe('Failed');
  const older = [{ repository: 'apps', package: 'web', revision: 1, commit: 'c', tree: 't' }];
  expect(verify(target({ ...report('True', 'True'), packages: older }))).toBe('Pending');
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

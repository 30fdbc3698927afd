import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { caBundleOf, renewServingCertificates, type ServingCertificates } from './serving-certificates.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 0, 1);
const names = ['api.sluice-system.svc', '127.0.0.1'];

/** True if a client that trusts a bundle accepts the server at a time. */
function trusts(bundle: string, { server }: ServingCertificates, nowMs: number): boolean {
  const certificate = new X509Certificate(server.certificate);
  const isValid = (one: X509Certificate) => one.validFromDate.getTime() <= nowMs && nowMs < one.validToDate.getTime();
  const authorities = bundle.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? [];
  return (
    isValid(certificate) &&
    names.every((name) => (certificate.checkHost(name) ?? certificate.checkIP(name)) !== undefined) &&
    authorities
      .map((text) => new X509Certificate(text))
      .some((one) => isValid(one) && certificate.checkIssued(one) && certificate.verify(one.publicKey))
  );
}

test('from one authority to the next, a client with the bundle of a day ago, or a server with the certificate of a day ago, is enough', async () => {
  let present: ServingCertificates | undefined;
  const [serverKeys, authorities] = [new Set<string>(), new Set<string>()];
  for (let day = 0; day < 400; day += 1) {
    const nowMs = START_MS + day * DAY_MS;
    const before = present;
    present = await renewServingCertificates(before, { names, nowMs });
    expect(trusts(caBundleOf(present), present, nowMs), `day ${day}`).toBe(true);
    expect(trusts(caBundleOf(before ?? present), present, nowMs), `day ${day}, old bundle`).toBe(true);
    expect(trusts(caBundleOf(present), before ?? present, nowMs), `day ${day}, old server`).toBe(true);
    expect(present.authorities.length).toBeLessThan(3);
    serverKeys.add(present.server.key);
    for (const { certificate } of present.authorities) authorities.add(certificate);
    if (before !== present) expect(await renewServingCertificates(present, { names, nowMs })).toBe(present);
  }
  expect(authorities.size).toBe(2);
  // Every 60 days, and when the other authority signs.
  expect(serverKeys.size).toBe(8);
});

test('an authority that has a signing successor keeps no key', async () => {
  const first = await renewServingCertificates(undefined, { names, nowMs: START_MS });
  const nowMs = START_MS + 246 * DAY_MS;
  const announced = await renewServingCertificates(first, { names, nowMs });
  expect(announced.authorities).toHaveLength(2);
  const signs = (certificates: ServingCertificates) =>
    certificates.authorities.findIndex(({ certificate }) =>
      new X509Certificate(certificates.server.certificate).verify(new X509Certificate(certificate).publicKey),
    );
  expect(signs(announced)).toBe(0);
  const adopted = await renewServingCertificates(announced, { names, nowMs: nowMs + DAY_MS });
  expect(signs(adopted)).toBe(1);
  expect(adopted.authorities.map(({ key }) => key !== undefined)).toEqual([false, true]);
});

test('the last certificate of an authority stays until its successor signs', async () => {
  const first = await renewServingCertificates(undefined, { names, nowMs: START_MS });
  const nowMs = START_MS + 350 * DAY_MS;
  const late = await renewServingCertificates(first, { names, nowMs });
  expect(late.authorities).toHaveLength(2);
  expect(await renewServingCertificates(late, { names, nowMs: nowMs + DAY_MS / 2 })).toBe(late);
  const next = await renewServingCertificates(late, { names, nowMs: nowMs + DAY_MS });
  expect(next.server).not.toEqual(late.server);
  expect(trusts(caBundleOf(late), next, nowMs + DAY_MS)).toBe(true);
});

test('another name, or a server that was off for years, gets certificates at once', async () => {
  const first = await renewServingCertificates(undefined, { names: ['old.svc'], nowMs: START_MS });
  const renamed = await renewServingCertificates(first, { names, nowMs: START_MS });
  expect(renamed.authorities).toEqual(first.authorities);
  expect(trusts(caBundleOf(first), renamed, START_MS)).toBe(true);
  const nowMs = START_MS + 900 * DAY_MS;
  const later = await renewServingCertificates(renamed, { names, nowMs });
  expect(later.authorities).toHaveLength(1);
  expect(trusts(caBundleOf(later), later, nowMs)).toBe(true);
});

import { beforeAll, expect, test } from 'vitest';
import { NO_TRUST, parseClusterTrust } from './cluster-trust.ts';
import { issue, trustData } from './testing-cluster.ts';

let ca: string;
let otherCa: string;
beforeAll(async () => {
  ca = (await issue({ commonName: 'ca', usage: 'authority' })).certificate;
  otherCa = (await issue({ commonName: 'other', usage: 'authority' })).certificate;
});

test('the ConfigMap of a kube-apiserver names authorities, allowed names and headers', () => {
  const { requestHeader, clientAuthorities, problems } = parseClusterTrust(
    trustData({ proxy: `# the old one\n${ca}\n${otherCa}`, client: otherCa }),
  );
  expect(requestHeader).toMatchObject({
    allowedNames: ['front-proxy-client'],
    usernameHeaders: ['x-remote-user'],
    uidHeaders: ['x-remote-uid'],
    groupHeaders: ['x-remote-group'],
    extraPrefixes: ['x-remote-extra-'],
  });
  expect(requestHeader?.authorities.pem).toBe(ca + otherCa);
  expect(clientAuthorities.pem).toBe(otherCa);
  expect(problems).toEqual([]);
});

test('a cluster without an aggregator has no headers that are read', () => {
  expect(parseClusterTrust({})).toEqual(NO_TRUST);
  expect(parseClusterTrust(trustData({ client: ca })).requestHeader).toBeUndefined();
  const unnamed = trustData({ proxy: ca }, { 'requestheader-username-headers': '' });
  expect(parseClusterTrust(unnamed).requestHeader).toBeUndefined();
});

test('without allowed names the aggregator may have any name, unless the authority is also that of users', () => {
  const anyName = { 'requestheader-allowed-names': '[]' };
  const apart = parseClusterTrust(trustData({ proxy: ca, client: otherCa }, anyName));
  expect(apart.requestHeader?.allowedNames).toEqual([]);
  const shared = parseClusterTrust(trustData({ proxy: otherCa + ca, client: ca }, anyName));
  expect(shared.requestHeader).toBeUndefined();
  expect(shared.clientAuthorities.pem).toBe(ca);
  expect(shared.problems).toEqual([expect.stringContaining('set --requestheader-allowed-names')]);
  const named = parseClusterTrust(trustData({ proxy: ca, client: ca }));
  expect(named.requestHeader?.allowedNames).toEqual(['front-proxy-client']);
});

test('a value that cannot be read is an error that names its key', () => {
  const broken: [string, string][] = [
    ['requestheader-allowed-names', 'front-proxy-client'],
    ['requestheader-group-headers', '{"a":1}'],
    ['requestheader-extra-headers-prefix', '[""]'],
    ['requestheader-username-headers', '["x-remote user"]'],
    ['client-ca-file', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    ['requestheader-client-ca-file', ca.slice(0, 200) + ca.slice(210)],
  ];
  for (const [key, value] of broken)
    expect(() => parseClusterTrust(trustData({ proxy: ca, client: ca }, { [key]: value }))).toThrowError(
      expect.objectContaining({ code: 'InvalidInput', message: expect.stringContaining(key) }),
    );
});

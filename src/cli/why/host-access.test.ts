import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { rejectionError } from '../../git/refs/push-conflict.ts';
import { appCommand, editStep, failureText, hostFailures, secretCommand, tokenCommand } from './host-access.ts';

const EXPLANATION = {
  ...{ repository: 'apps', package: 'db', workspace: 'v1', lifecycle: 'Proposed', revision: 0, latest: false },
  ...{ commit: 'c', enforcement: 'enforce', gates: [], contributors: [], resolvers: [], delivery: [], next: [] },
};
const message = 'status 401: the token of Secret default/forge is not valid; put a new one there';

function accessWith(reasonsOf: Readonly<Record<string, readonly string[]>>) {
  const get = async (_kind: unknown, { name }: { readonly name: string }) => {
    const reasons = reasonsOf[name]?.map((reason) => ({ reason, message }));
    if (reasons === undefined) throw new SluiceError('NotFound', `${name} not found`);
    return { explanation: { ...EXPLANATION, name, reasons } };
  };
  return { client: { subResource: () => ({ get }) } as never, namespace: 'default', isSluice: true };
}

test('what the Git host has against proposals is named once, with those that report it', async () => {
  const access = accessWith({ a: ['PullRequestFailed'], b: ['WaitsForApproval'], c: ['PullRequestFailed'] });
  expect(await hostFailures(access, ['a', 'deleted', 'b', 'c'])).toEqual({
    messages: [message],
    revisions: ['a', 'c'],
  });
  expect(await hostFailures({ ...access, isSluice: false }, ['a'])).toEqual({ messages: [], revisions: [] });
});

test('a push that the Git host refuses does not say that pull requests cannot be read', () => {
  const pushed = rejectionError([{ ref: 'refs/heads/main', reason: 'pre-receive hook declined' }], [], '').message;
  expect(failureText({ messages: [pushed] }, false)).toBe(', but the Git host refuses pushes that pull requests need');
  for (const messages of [[message], [pushed, message]])
    expect(failureText({ messages }, false)).toBe(', but pull requests cannot be opened or read');
  expect(failureText({ messages: [] }, true)).toBe(', but pull requests cannot be opened or read');
  expect(failureText({ messages: [] }, false)).toBe('');
});

test('the command for a Secret that is missing creates it', () => {
  expect(secretCommand('default', { name: 'forge', key: 'token' })).toBe(
    'kubectl create secret generic forge --namespace default --from-file=token=TOKEN_FILE',
  );
  expect(secretCommand('default', { name: 'forge', key: 'token' }, true)).toContain(
    ' --from-literal=username=USER --from-file=token=TOKEN_FILE',
  );
});

test('a step to change a policy names the command, or the file of a repository', () => {
  const metadata = { name: 'review', namespace: 'default' } as const;
  const what = 'change spec.review';
  expect(editStep({ metadata } as never, what)).toBe(`${what}: kubectl edit packagepolicy review --namespace default`);
  const origin = { name: 'review', file: 'policies/p.yaml', commit: 'c', repository: 'apps', branch: 'main' };
  expect(editStep({ metadata, origin } as never, what)).toBe(`${what} in policies/p.yaml of Repository apps`);
});

test('the command for a Secret that is there replaces the keys that it names, and no others', () => {
  expect(tokenCommand('default', { name: 'forge', key: 'token' })).toBe(
    `kubectl patch secret forge --namespace default --type=merge --patch "{\\"data\\":{\\"token\\":\\"$(base64 < TOKEN_FILE | tr -d '\\n')\\"}}"`,
  );
  const folder = mkdtempSync(join(tmpdir(), 'sluice-why-'));
  writeFileSync(join(folder, 'KEY_FILE'), `${'key\n'.repeat(40)}`);
  // A program in place of kubectl that prints the patch.
  const command = appCommand('default', { name: 'github', key: 'token' }, true);
  const shell = `kubectl() { while [ "$1" != --patch ]; do shift; done; printf %s "$2"; }\n${command}`;
  const { data } = JSON.parse(execFileSync('sh', ['-c', shell], { cwd: folder, encoding: 'utf8' }));
  rmSync(folder, { recursive: true });
  const values = Object.entries(data as Record<string, string>).map(([key, value]) => [key, atob(value)]);
  expect(Object.fromEntries(values)).toEqual({
    ...{ githubAppID: 'APP_ID', githubAppInstallationID: 'INSTALLATION_ID' },
    githubAppPrivateKey: 'key\n'.repeat(40),
  });
});

import { expect, test } from 'vitest';
import { HostRules } from '../../git/network/host-rules.ts';
import { configMapKind } from '../../resource/kinds/core/config-map.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { authorizerOf, binding, clusterRole, user } from '../authorization/testing.ts';
import { checkGitLocation } from './check-git-location.ts';

const ANNA = { kind: 'User', name: 'anna' };
const HOSTS = new HostRules(['127.0.0.1:3000', 'gitea:3000']);
const REMOTE = 'https://git.example.com/a.git';

const { authorizer } = authorizerOf(
  clusterRole('writer', [
    { verbs: ['*'], apiGroups: ['config.porch.kpt.dev', 'sluice.dev'], resources: ['repositories', 'deliverytargets'] },
  ]),
  clusterRole('one', [
    {
      ...{ verbs: ['use'], apiGroups: ['sluice.dev'], resources: ['localrepositories'] },
      resourceNames: ['sluice:///team-a.git'],
    },
    { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['mine'] },
  ]),
  binding('a', 'writers', 'ClusterRole/writer', ANNA),
  binding('a', 'ones', 'ClusterRole/one', ANNA),
);

function object(kind: Kind, git: object, namespace = 'a'): KubernetesObject {
  return { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: 'x', namespace }, spec: { git } };
}

function check(kind: Kind, git: object, old?: object, who = user('anna')): Promise<void> {
  const stored = old === undefined ? undefined : (object(kind, old) as never);
  const write = { user: who, kind, subResource: '', object: object(kind, git), old: stored } as const;
  return checkGitLocation({ ...write, operation: old === undefined ? 'create' : 'update' }, authorizer, HOSTS);
}

const KINDS = [repositoryKind, deliveryTargetKind].map((kind) => kind as unknown as Kind);

test('an address on the machine of the server takes a right of its own, whatever its form', async () => {
  for (const kind of KINDS)
    for (const repo of [
      '/srv/git/a.git',
      'file:///srv/git/a.git',
      'FILE:///srv/git/a.git',
      'http://127.0.0.1:3000/a.git',
      'https://127.0.0.1:3000/a.git',
      'ssh://git@127.0.0.1:3000/a.git',
      'sluice:///team-b.git',
    ])
      await expect(check(kind, { repo }), repo).rejects.toThrow(
        expect.objectContaining({
          code: 'Refused',
          message: expect.stringContaining(`the verb "use" on localrepositories.sluice.dev "${repo}"`),
        }),
      );
});

test('a host that the operator did not permit is refused to all users, if its text shows that it is local', async () => {
  const root = user('root', 'system:masters');
  for (const kind of KINDS) {
    for (const repo of [
      'http://127.0.0.1:3001/a.git',
      'https://localhost/a.git',
      'https://10.0.0.1/a.git',
      'https://169.254.169.254/latest',
      'https://[::ffff:127.0.0.1]/a.git',
      'https://2130706433/a.git',
      'ssh://git@[::1]/a.git',
      'git@127.0.0.1:a.git',
    ])
      await expect(check(kind, { repo }, undefined, root), repo).rejects.toThrow(
        expect.objectContaining({ code: 'Refused', message: expect.stringContaining('--allow-git-host') }),
      );
    await expect(check(kind, { repo: 'http://git.example.com/a.git' }, undefined, root)).rejects.toThrow(
      /clear text.*--allow-git-host git\.example\.com:80/,
    );
    await check(kind, { repo: 'http://gitea:3000/a.git' });
  }
});

test('that right can be granted for one address, in one namespace', async () => {
  for (const kind of KINDS) {
    await check(kind, { repo: 'sluice:///team-a.git' });
    await check(kind, { repo: '/srv/git/a.git' }, undefined, user('root', 'system:masters'));
    const elsewhere = object(kind, { repo: 'sluice:///team-a.git' }, 'b');
    const write = { user: user('anna'), operation: 'create', kind, subResource: '', object: elsewhere } as const;
    await expect(checkGitLocation({ ...write, old: undefined }, authorizer, HOSTS)).rejects.toThrow();
  }
});

test('a Secret is sent to an address by those only who may read it', async () => {
  for (const kind of KINDS) {
    await check(kind, { repo: REMOTE });
    await check(kind, { repo: REMOTE, secretRef: { name: '' } });
    await check(kind, { repo: REMOTE, secretRef: { name: 'mine' } });
    await expect(check(kind, { repo: REMOTE, secretRef: { name: 'theirs' } })).rejects.toThrow(
      /the Secret a\/theirs is sent to spec\.git\.repo/,
    );
  }
});

test('unchanged fields are not checked again; a Secret for another address is', async () => {
  const theirs = { repo: REMOTE, secretRef: { name: 'theirs' } };
  for (const kind of KINDS) {
    await check(kind, theirs, theirs);
    await check(kind, { repo: '/srv/a.git' }, { repo: '/srv/a.git' });
    await expect(check(kind, { ...theirs, repo: 'https://evil.example.com/a.git' }, theirs)).rejects.toThrow();
    await expect(check(kind, { repo: '/srv/b.git' }, { repo: '/srv/a.git' })).rejects.toThrow();
  }
});

test('a Secret that an annotation names is named by those only who may read it', async () => {
  for (const kind of KINDS)
    for (const annotation of ['sluice.dev/signing-secret', 'sluice.dev/webhook-secret']) {
      const named = (secret?: string) => {
        const { metadata, ...rest } = object(kind, { repo: REMOTE });
        return {
          ...rest,
          metadata: { ...metadata, ...(secret === undefined ? {} : { annotations: { [annotation]: secret } }) },
        };
      };
      const write = (secret: string | undefined, before?: string) =>
        checkGitLocation(
          {
            ...{ user: user('anna'), kind, subResource: '', operation: 'update' },
            object: named(secret),
            old: named(before) as never,
          },
          authorizer,
          HOSTS,
        );
      await write('mine');
      await write('');
      await write('theirs', 'theirs');
      await write(undefined, 'theirs');
      await expect(write('theirs', 'mine')).rejects.toThrow(
        /the Secret a\/theirs (signs its commits|verifies its webhooks), and/,
      );
      await expect(write('theirs')).rejects.toThrow(expect.objectContaining({ code: 'Refused' }));
    }
});

test('other kinds may have such fields', async () => {
  await check(configMapKind as unknown as Kind, { repo: '/srv/git/a.git' });
});

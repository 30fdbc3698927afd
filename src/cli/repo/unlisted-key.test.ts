import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { Session } from '../../app/session/session.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { statementSigner } from '../../package/trust/statement/statement-signer.ts';
import { repositoryKind, TRUSTED_KEYS_ANNOTATION } from '../../resource/kinds/porch/repository.ts';
import { cliFixture } from '../testing.ts';

const REFUSED =
  /the signing key of this server, SHA256:\S+, is not one that the repository trusts, .*sluice.dev\/trusted-keys/;

test('where a repository lists only the key of the operator, what is decided with another one is refused with the next step', async () => {
  await using cli = await cliFixture();
  const file = join(cli.folder, 'operator-key');
  const text = generateSshKey('operator');
  writeFileSync(file, text, { mode: 0o600 });
  const place = ['--signing-key', file];
  await cli.run('repo', 'reg', cli.bare('one.git'), ...place);
  const session = await Session.open({
    folder: dataFolder(cli.data),
    actor: { name: 'anna' },
    write: true,
    signing: { file },
  });
  const object = await session.client.get(repositoryKind, { name: 'one' });
  const annotations = { ...object.metadata.annotations, [TRUSTED_KEYS_ANNOTATION]: statementSigner(text).publicKey };
  await session.client.update(repositoryKind, { ...object, metadata: { ...object.metadata, annotations } });
  await session.close();
  const input = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';
  const { execFileSync } = await import('node:child_process');
  const bare = ['--git-dir', join(cli.folder, 'one.git'), 'hash-object', '-w', '--stdin'];
  const blob = execFileSync('git', bare, { input, encoding: 'utf8' }).trim();
  const root = cli.tree('one.git', `040000 tree ${cli.tree('one.git', `100644 blob ${blob}\tKptfile\n`)}\tweb\n`);
  const commit = cli.git('one.git', 'commit-tree', '-m', 'by hand', '-p', 'main', root);
  cli.git('one.git', 'update-ref', 'refs/heads/main', commit);
  cli.git('one.git', 'update-ref', 'refs/tags/web/v1', commit);

  const refused = { code: 1, stdout: '', stderr: expect.stringMatching(REFUSED) };
  expect(await cli.run('repo', 'adopt', 'one', '--yes')).toEqual(refused);
  await cli.run('rpkg', 'init', 'db', '--repository', 'one', '--workspace', 'v1');
  expect(await cli.run('rpkg', 'propose', 'one.db.v1')).toMatchObject(refused);
  expect(await cli.run('rpkg', 'propose', 'one.db.v1', ...place)).toMatchObject({ code: 0 });
  expect(await cli.run('rpkg', 'approve', 'one.db.v1')).toMatchObject(refused);
  expect(await cli.run('rpkg', 'approve', 'one.db.v1', ...place)).toMatchObject({ code: 0 });
  const adopted = await cli.run('repo', 'adopt', 'one', '--yes', ...place);
  expect(adopted).toMatchObject({ code: 0, stdout: expect.stringContaining('adopted: 1 tag') });
});

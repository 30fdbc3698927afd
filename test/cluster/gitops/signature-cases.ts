import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { git as runGit } from '../../support/git/git-cli.ts';
import { gpgKey, isInstalled } from '../../support/git/signing-keys.ts';
import { skipFor } from '../../support/skip.ts';
import { capture } from '../support/gitops/capture.ts';
import { configMap, type Scenario } from '../support/gitops/scenario.ts';

const PASSPHRASE = 'of a test';

export interface SignatureOptions {
  /** Makes a public key known to the engine beside the objects of `follow`. */
  readonly trust: (keyId: string, armored: string) => Promise<void>;
  readonly refusal: RegExp;
  /** Runs while the engine refuses a commit. */
  readonly refused?: () => Promise<void>;
}

/** Commits that Sluice signed with OpenPGP, and engines that require it. */
export function signatureCases(of: () => Scenario, options: () => SignatureOptions): void {
  const without = !isInstalled('gpg') && 'gpg is not installed';
  // Now, since gpg blocks this process: with tests under way, servers would close connections meanwhile.
  const newKey = () => (without === false ? gpgKey(mkdtempSync(join(tmpdir(), 'sluice-gpg-')), PASSPHRASE) : undefined);
  const [trusted, other] = [newKey(), newKey()];

  test('commits with a good signature are synced, and those of another key are refused', skipFor(without), async () => {
    const site = of();
    const { trust, refusal, refused } = options();
    if (trusted === undefined || other === undefined) throw new Error('the keys are missing');
    try {
      const secret = (armored: string) => ({ stringData: { 'git.asc': armored, passphrase: PASSPHRASE } });
      await site.world.create('Secret', {
        metadata: { name: 'delivery-key' },
        type: 'Opaque',
        ...secret(trusted.armored),
      });
      await trust(trusted.keyId, trusted.publicKey);
      const place = await site.target('signed', ['sealed'], {
        metadata: { annotations: { 'sluice.dev/signing-secret': 'delivery-key' } },
        follow: { verify: { publicKey: trusted.publicKey, keyId: trusted.keyId } },
      });
      const publish = (revision: number) =>
        site.publish(place, 'sealed', `v${revision}`, { 'cm.yaml': configMap('sealed', 'default', `${revision}`) }, [
          `sealed v${revision}`,
        ]);
      await publish(1);
      expect(runGit(site.world.folderOf(place), ['cat-file', 'commit', 'main'])).toContain('BEGIN PGP SIGNATURE');
      await site.synced(place, 'sealed');
      expect(await site.data('default', 'sealed')).toEqual({ value: '1' });

      await site.world.patch('Secret', 'delivery-key', secret(other.armored));
      await publish(2);
      const { object } = await site.reported(place, 'sealed', 'refused', ({ message }) => refusal.test(message));
      capture(`${site.engine.name === 'Flux' ? 'flux' : 'argocd'}/wrong-signature`, object);
      await refused?.();
      expect(await site.data('default', 'sealed')).toEqual({ value: '1' });

      await site.world.patch('Secret', 'delivery-key', secret(trusted.armored));
      await publish(3);
      await site.synced(place, 'sealed');
      expect(await site.data('default', 'sealed')).toEqual({ value: '3' });
    } finally {
      trusted.end();
      other.end();
    }
  });
}

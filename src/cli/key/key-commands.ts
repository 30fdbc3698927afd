import type { Command } from 'commander';
import { examples, type Finish, withData, withHeaders, withOutput } from '../access/options.ts';
import type { Invocation } from '../output/invocation.ts';

const FORMATS = ['text', 'json', 'yaml'];

function withKeyPlace(command: Command): Command {
  return withData(command)
    .option('--kubeconfig <file>', 'kubeconfig of a cluster with "sluice serve", in place of a data folder')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--ledger-namespace <name>', 'namespace of "sluice serve" in the cluster (default: sluice-system)');
}

/** `sluice key …`: the keys of a data folder, or of an installation in a cluster. */
export function addKeyCommands(program: Command, invocation: Invocation, finish: Finish): void {
  const key = program
    .command('key')
    .description('keys that sign statements, and keys that are trusted')
    .addHelpText(
      'after',
      `
They work on a data folder, also while "sluice up" runs, which applies a change at once. With --kubeconfig, or with $KUBECONFIG where no
data folder is named, they work on the trust ledger and the signing key of "sluice serve" in a cluster: ConfigMaps and the Secret
sluice-signing-key of its namespace. docs/trust.md explains what keys are for.`,
    );
  examples(key, 'sluice key show', 'sluice key trust other-server.pub');

  const show = key
    .command('show')
    .description('print the own public key, and all keys that are or were trusted')
    .option('--allowed-signers', 'print an allowed-signers file for "ssh-keygen -Y verify -I sluice" instead')
    .addHelpText('after', '\nExit code 1 if the own key cannot be read.');
  examples(
    withHeaders(withOutput(withKeyPlace(show), ['table', 'json', 'yaml'])),
    'sluice key show',
    'sluice key show --allowed-signers > allowed-signers',
    'sluice key show --kubeconfig cluster.kubeconfig',
  ).action(async (options) => {
    finish(await (await import('./key-show.ts')).keyShow(options, invocation));
  });

  const rotate = key
    .command('rotate')
    .description('replace the key of this server; what the old one signed stays valid')
    .addHelpText(
      'after',
      `
The private part of the old key is removed. Servers that trust the old key need the new one: "sluice key trust" there.`,
    );
  examples(withOutput(withKeyPlace(rotate), FORMATS), 'sluice key rotate').action(async (options) => {
    finish(await (await import('./key-rotate.ts')).keyRotate(options, invocation));
  });

  const revoke = key
    .command('revoke')
    .description('revoke a key permanently')
    .argument('<fingerprint>', 'SHA256:…, as "sluice key show" prints it')
    .option('--force', 'also the own key that signs now; another one is made first')
    .addHelpText(
      'after',
      `
What the key signed until now, and Sluice has seen, keeps its validity; nothing that comes later counts, whatever its date.`,
    );
  examples(
    withOutput(withKeyPlace(revoke), FORMATS),
    'sluice key revoke SHA256:UNgWKzz8hvabKkiY/9yU+T5UPBFpBedPWtysJSdwguA',
    'sluice key revoke SHA256:UNgWKzz8hvabKkiY/9yU+T5UPBFpBedPWtysJSdwguA --force',
  ).action(async (fingerprint, options) => {
    finish(await (await import('./key-revoke.ts')).keyRevoke(fingerprint, options, invocation));
  });

  const trust = key
    .command('trust')
    .description('trust the public key of another server')
    .argument('<key>', 'file with public keys, one a line; - for stdin; or a public key itself')
    .addHelpText(
      'after',
      `
What the key signs counts in every repository that does not list its keys itself (annotation sluice.dev/trusted-keys).`,
    );
  examples(
    withOutput(withKeyPlace(trust), FORMATS),
    'sluice key trust other-server.pub',
    "sluice key trust 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI… sluice@other'",
    'ssh other sluice key show -o json | jq -r .own.publicKey | sluice key trust -',
  ).action(async (source, options) => {
    finish(await (await import('./key-trust.ts')).keyTrust(source, options, invocation));
  });
}

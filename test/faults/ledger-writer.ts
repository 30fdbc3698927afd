// Opens the trust of a data folder and writes into its ledger until it is killed, and reports each write that is durable.
// Arguments: the data folder, a name for this run, "start" to end after the start.
import { writeSync } from 'node:fs';
import { openTrust } from '../../src/app/trust/open-trust.ts';

const [folder = '', life = '', mode = ''] = process.argv.slice(2);
const report = (line: object) => writeSync(1, `${JSON.stringify(line)}\n`);
const PACKAGES = 5;

const { signer, ledger } = await openTrust(folder);
report({ own: signer().fingerprint });
if (mode === 'start') {
  ledger.close();
  process.exit();
}

for (let count = 0; ; count += 1) {
  const scope = { repository: 'r', package: `p${Math.floor(Math.random() * PACKAGES)}`, workspace: 'v1' };
  const sequence = (ledger.mark(scope)?.sequence ?? 0) + 1;
  const entry = { scope, sequence, digest: `${life}-${count}`, proven: true };
  const durable = Math.random() < 0.5;
  ledger.raise([entry], { durable });
  if (durable) report({ package: scope.package, sequence });
  if (count % 10 !== 0) continue;
  const key = { fingerprint: `SHA256:${life}-${count}`, publicKey: 'ssh-ed25519 A', comment: '', addedAt: '' };
  ledger.addKey({ ...key, origin: 'added' });
  report({ key: key.fingerprint });
  if (count % 20 !== 0) continue;
  ledger.revokeKey(key.fingerprint, '2026-01-01T00:00:00Z');
  report({ revoked: key.fingerprint });
}

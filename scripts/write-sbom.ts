// Prints a CycloneDX list of the npm packages that Sluice is installed with, made by `npm sbom` from the lock file. It is the same for the
// same lock file: the random serial number and the time, which are optional in CycloneDX, are left out.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Manifest {
  devDependencies?: unknown;
  dev?: boolean;
}
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));

const manifest = read('package.json') as Manifest;
const lock = read('package-lock.json') as { packages: Record<string, Manifest> };
// `npm sbom --omit=dev` would also leave out a package that a production dependency shares with a development dependency.
delete manifest.devDependencies;
delete lock.packages['']?.devDependencies;
lock.packages = Object.fromEntries(Object.entries(lock.packages).filter(([, { dev }]) => dev !== true));

const temporary = mkdtempSync(join(tmpdir(), 'sluice-sbom-'));
try {
  // npm names the component after the folder.
  const folder = join(temporary, 'sluice');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  const words = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const sbom = JSON.parse(execFileSync('npm', words, { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 26 }));
  delete sbom.serialNumber;
  delete sbom.metadata.timestamp;
  process.stdout.write(`${JSON.stringify(sbom, null, 2)}\n`);
} finally {
  rmSync(temporary, { recursive: true });
}

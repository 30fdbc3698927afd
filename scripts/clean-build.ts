// Removes the last build: the compiler leaves files of removed sources there, and they would be packed.
import { rm } from 'node:fs/promises';

await rm(new URL('../dist', import.meta.url), { recursive: true, force: true });

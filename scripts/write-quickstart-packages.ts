// Writes the packages of examples/quickstart as objects for kubectl. Run by `npm run quickstart`; a test fails when they are not current.
import { writeFileSync } from 'node:fs';
import { QUICKSTART_PACKAGES_FILE, quickstartPackages } from './quickstart-packages.ts';

writeFileSync(QUICKSTART_PACKAGES_FILE, quickstartPackages());

// Writes kptfile.schema.json from the zod schema. Run by `npm run schema`.
import { writeFileSync } from 'node:fs';
import { kptfileJsonSchema } from '../model/json-schema.ts';

writeFileSync(new URL('../kptfile.schema.json', import.meta.url), `${JSON.stringify(kptfileJsonSchema(), null, 2)}\n`);

// Writes the types of Kubernetes for validation. Run by `npm run kubernetes-types`, after every update of the Kubernetes client; a
// test fails when they are not current.
import { writeFileSync } from 'node:fs';
import { KUBERNETES_TYPES_FILE, kubernetesTypes } from './kubernetes-types.ts';

writeFileSync(KUBERNETES_TYPES_FILE, await kubernetesTypes());

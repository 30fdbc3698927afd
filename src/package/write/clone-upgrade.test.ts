import { describe, expect, test } from 'vitest';
import { anna, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { outcomeOf, publish } from '../../../test/support/shop.ts';
import { initRepository, openRepository } from '../../git/open-repository.ts';
import { PackageRepository } from '../package-repository.ts';
import { DEFAULT_POLICY } from '../policy.ts';
import type { RevisionStore } from '../revision-store.ts';
import type { RevisionSource } from './revision-source.ts';

const KPTFILE = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: upf
info:
  description: a user plane
  readinessGates:
    - conditionType: tested
status:
  conditions:
    - type: tested
      status: "True"
`;
const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: upf
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: upf
          image: upf:1 # the release
`;

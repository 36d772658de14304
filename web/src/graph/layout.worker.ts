import { type LayoutInput, layered } from "./layered";

export interface LayoutRequest {
  readonly id: number;
  readonly input: LayoutInput;
}

const scope = self as unknown as DedicatedWorkerGlobalScope;

scope.onmessage = ({ data }: MessageEvent<LayoutRequest>) => {
  const layout = layered(data.input);
  const { x, y, bends, bendsFrom } = layout;
  scope.postMessage({ id: data.id, layout }, [x.buffer, y.buffer, bends.buffer, bendsFrom.buffer] as ArrayBuffer[]);
};

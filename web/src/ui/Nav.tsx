import { Link, useRoute } from "wouter";
import { PLACES, type Place } from "../places";

/** The ways to the pages. Between a phone and a desk only the drawings are shown, and their names on pointing. */
export function Nav({ isRail = true }: { readonly isRail?: boolean }) {
  return (
    <ul className="flex flex-col gap-0.5">
      {PLACES.map((place) => (
        <li key={place.path}>
          <NavLink place={place} isRail={isRail} />
        </li>
      ))}
    </ul>
  );
}

function NavLink({ place, isRail }: { readonly place: Place; readonly isRail: boolean }) {
  const [isExact] = useRoute(place.path);
  const [isBelow] = useRoute(`${place.path}/*`);
  const isHere = isExact || (place.path !== "/" && isBelow);
  const Icon = place.icon;
  return (
    <Link
      href={place.path}
      aria-current={isHere ? "page" : undefined}
      aria-keyshortcuts={`g ${place.letter}`}
      className="flex h-8 items-center gap-2.5 rounded-md px-2.5 text-dim transition-colors duration-75 hover:bg-hover hover:text-fg aria-[current=page]:bg-panel2 aria-[current=page]:font-medium aria-[current=page]:text-fg"
    >
      <Icon size={15} strokeWidth={1.8} aria-hidden="true" className="shrink-0" />
      <span className={isRail ? "max-lg:sr-only" : ""}>{place.name}</span>
    </Link>
  );
}

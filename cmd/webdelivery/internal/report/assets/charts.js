// Draws each .chart from the JSON behind it, with the names, colours and dashes of its legend. Dark mode and paper have
// other colours.
"use strict";
(() => {
	const root = document.documentElement;
	const places = [...document.querySelectorAll(".chart")];
	const whole = (n) => Number(n).toLocaleString("en");

	function draw(place) {
		const styles = getComputedStyle(root);
		const colour = (name) => styles.getPropertyValue(`--${name}`).trim();
		const font = { color: colour("soft"), fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 };
		const axis = {
			axisLine: { lineStyle: { color: colour("edge") } }, axisTick: { show: false }, axisLabel: font,
			splitLine: { lineStyle: { color: colour("line") } },
		};
		const given = JSON.parse(place.nextElementSibling.textContent);
		const legend = place.parentElement.querySelectorAll(".legend li");
		const chart = echarts.getInstanceByDom(place) ?? echarts.init(place);
		chart.resize(); // before setOption, which draws at once; resize alone draws in the next frame, too late for paper
		chart.setOption({
			series: given.lines.map((line, i) => {
				const key = getComputedStyle(legend[i].querySelector("path"));
				return {
					type: "line", name: legend[i].querySelector("bdi").textContent, color: key.stroke, data: line.values,
					lineStyle: { width: 2, type: key.strokeDasharray.match(/[\d.]+/g)?.map(Number) ?? "solid" },
					showSymbol: given.times.length === 1, emphasis: { disabled: true },
				};
			}),
			textStyle: { fontFamily: font.fontFamily },
			animation: false,
			grid: { left: 0, right: 8, top: 10, bottom: 0, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
			legend: { show: false }, // the page has its own, which wraps and prints
			tooltip: {
				// It is drawn on the canvas: as HTML it would need styles that the page's policy forbids.
				renderMode: "richText", trigger: "axis", axisPointer: { type: "line", lineStyle: { color: colour("soft") } },
				valueFormatter: whole, backgroundColor: colour("card"), borderColor: colour("edge"), textStyle: { ...font, color: colour("text") },
				confine: true,
			},
			xAxis: {
				...axis, type: "category", boundaryGap: false, splitLine: { show: false }, data: given.times,
			},
			yAxis: { ...axis, type: "value", minInterval: 1, axisLine: { show: false }, axisLabel: { ...font, formatter: whole } },
		}, true);
	}

	const drawAll = () => places.forEach(draw);
	const paper = (on) => () => { // a canvas keeps its width and its colours on paper, so it is drawn for paper first
		root.classList.toggle("paper", on);
		drawAll();
	};
	drawAll();
	addEventListener("beforeprint", paper(true));
	addEventListener("afterprint", paper(false));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	const resized = new ResizeObserver((entries) => entries.forEach((e) => echarts.getInstanceByDom(e.target)?.resize()));
	places.forEach((place) => resized.observe(place));
})();
